# frozen_string_literal: true

# test: smoke

require_relative "support/cases"

# RFC 9112, 7.1: the chunked coding.
class ChunksConformanceTest < Minitest::Test
  include Conformance

  last = "0\r\n\r\n"
  hello = "5\r\nhello\r\n"
  {
    "no chunk but the last" => [last, ""], "one chunk" => ["#{hello}#{last}", "hello"],
    "several chunks" => ["#{hello}1\r\n,\r\n6\r\n world\r\n#{last}", "hello, world"],
    "chunks of a byte" => ["1\r\na\r\n1\r\nb\r\n1\r\nc\r\n#{last}", "abc"],
    "a size in small letters" => ["a\r\n0123456789\r\n#{last}", "0123456789"],
    "a size in capitals" => ["A\r\n0123456789\r\n#{last}", "0123456789"],
    "a size with zeros before it" => ["00005\r\nhello\r\n#{last}", "hello"],
    "a size of sixteen digits" => ["0000000000000005\r\nhello\r\n#{last}", "hello"],
    "a last chunk of several zeros" => ["#{hello}000\r\n\r\n", "hello"],
    "line ends as data" => ["4\r\n\r\n\r\n\r\n#{last}", "\r\n\r\n"],
    "a last chunk as data" => ["5\r\n0\r\n\r\n\r\n#{last}", "0\r\n\r\n"],
    "an extension" => ["5;a\r\nhello\r\n#{last}", "hello"],
    "an extension with a value" => ["5;a=b\r\nhello\r\n#{last}", "hello"],
    "a quoted extension" => ["5;a=\"b;c\"\r\nhello\r\n#{last}", "hello"],
    "several extensions" => ["5;a;b=c;d\r\nhello\r\n#{last}", "hello"],
    "white space before an extension" => ["5 \t;a\r\nhello\r\n#{last}", "hello"],
    "white space in an extension" => ["5; a = b\r\nhello\r\n#{last}", "hello"],
    "an extension of the last chunk" => ["#{hello}0;a=b\r\n\r\n", "hello"],
    "a trailer" => ["#{hello}0\r\nX-A: b\r\n\r\n", "hello"],
    "several trailers" => ["#{hello}0\r\nX-A: b\r\nX-B:c\r\nx-a: \td \r\n\r\n", "hello"],
    "a trailer with an empty value" => ["#{hello}0\r\nX-A:\r\n\r\n", "hello"],
    "a trailer with bytes beyond ASCII" => ["#{hello}0\r\nX-A: \xFF\x80\r\n\r\n".b, "hello"]
  }.each do |name, (body, content)|
    accepts name, chunked(body), body: content, env: { "HTTP_X_A" => nil, "CONTENT_LENGTH" => content.bytesize.to_s }
  end

  # A trailer that could change what the request is never reaches the application.
  ["Content-Length: 9", "Transfer-Encoding: gzip", "Host: b", "Authorization: Basic eDp5", "Content-Type: x/y",
   "Cookie: a=b", "X-Forwarded-For: 1.2.3.4", "Connection: close", "Expect: 100-continue", "Upgrade: a"].each do |line|
    name = line[/\A[^:]+/]
    key = name.upcase.tr("-", "_")
    expected = { key => nil, "HTTP_#{key}" => nil }.merge("HTTP_HOST" => "a", "CONTENT_LENGTH" => "5")
    accepts "and keeps the trailer #{name} from the env", chunked("#{hello}0\r\n#{line}\r\n\r\n"), env: expected,
                                                                                                   body: "hello"
  end

  {
    "an empty size" => "\r\nhello\r\n", "a size of letters" => "g\r\nhello\r\n",
    "a size with a prefix" => "0x5\r\nhello\r\n",
    "a size with a plus" => "+5\r\nhello\r\n", "a negative size" => "-5\r\nhello\r\n",
    "a space before a size" => " 5\r\nhello\r\n",
    "a space after a size" => "5 \r\nhello\r\n", "a tab after a size" => "5\t\r\nhello\r\n",
    "a space in a size" => "0 5\r\nhello\r\n",
    "a size of seventeen digits" => "00000000000000005\r\nhello\r\n", "a size with a point" => "5.0\r\nhello\r\n",
    "a size with a comma" => "5,5\r\nhello\r\n", "a size with an underscore" => "0_5\r\nhello\r\n",
    "a size in quotes" => "\"5\"\r\nhello\r\n", "a size in full-width digits" => "\xEF\xBC\x95\r\nhello\r\n".b,
    "a size that ends with LF" => "5\nhello\r\n", "a size that ends with CR" => "5\rhello\r\n",
    "a size that ends with CR CR LF" => "5\r\r\nhello\r\n", "a size that ends with LF CR" => "5\n\rhello\r\n",
    "an extension without a size" => ";a\r\nhello\r\n", "an extension that ends with LF" => "5;a\nhello\r\n",
    "an extension with a bare CR" => "5;a\rb\r\nhello\r\n", "an extension with a NUL" => "5;a\0\r\nhello\r\n",
    "an extension with a control" => "5;a\x01\r\nhello\r\n", "a word in place of an extension" => "5 a\r\nhello\r\n",
    "a colon in place of an extension" => "5:a\r\nhello\r\n",
    "an equals sign in place of an extension" => "5=a\r\nhello\r\n",
    "a chunk that is longer than its size" => "4\r\nhello\r\n",
    "a chunk that is shorter than its size" => "6\r\nhello\r\n1\r\n",
    "a chunk without a line end" => "5\r\nhello5\r\nhello\r\n", "a chunk that ends with LF" => "5\r\nhello\n",
    "a chunk that ends with CR" => "5\r\nhello\r5\r\n", "a chunk that ends with LF CR" => "5\r\nhello\n\r",
    "a chunk that ends with two line ends" => "5\r\nhello\r\n\r\n", "a NUL as a size" => "\0\r\n",
    "no chunks at all" => "hello\r\n"
  }.each do |name, body|
    refuses name, 400, chunked("#{body}#{last}".b), called: true
    refuses "#{name}, after another chunk", 400, chunked("3\r\nabc\r\n#{body}#{last}".b), called: true
  end

  %w[FFFFFFFFFFFFFFFF 8000000000000000 7FFFFFFFFFFFFFFF 40000001].each do |size|
    refuses "a chunk of #{size}", 413, chunked("#{size}\r\nhello\r\n"), called: true
  end
  refuses "chunks that pass the largest number together", 413, chunked("5\r\nhello\r\nFFFFFFFFFFFFFFFE\r\n"),
          called: true

  {
    "a trailer without a colon" => "X-A", "a trailer without a name" => ": b",
    "a trailer with a space before the colon" => "X-A : b",
    "a trailer with a space in its name" => "X A: b", "a folded trailer" => "X-A: b\r\n c",
    "a trailer that starts with a space" => " X-A: b",
    "a trailer that ends with LF" => "X-A: b\nX-B: c", "a trailer that ends with CR" => "X-A: b\rX-B: c",
    "a trailer with a NUL" => "X-A: b\0", "a trailer with a control" => "X-A: \x01",
    "a trailer with DEL" => "X-A: \x7F",
    "a request in place of a trailer" => "GET /b HTTP/1.1"
  }.each { |name, line| refuses name, 400, chunked("#{hello}0\r\n#{line}\r\n\r\n".b), called: true }
  refuses "a last chunk that ends with LF", 400, chunked("#{hello}0\n\r\n"), called: true
  refuses "a last chunk that ends with LF LF", 400, chunked("#{hello}0\r\n\n"), called: true
  refuses "a last chunk that ends with CR CR", 400, chunked("#{hello}0\r\n\r\r"), called: true
  refuses "a last chunk with a sign", 400, chunked("#{hello}-0\r\n\r\n"), called: true

  accepts "extensions of four KiB", chunked("5;#{"a" * 4_095}\r\nhello\r\n#{last}"), body: "hello"
  refuses "extensions of more than four KiB", 400, chunked("5;#{"a" * 4_096}\r\nhello\r\n#{last}"), called: true
  refuses "extensions of more than four KiB together", 400, chunked("#{"1;#{"a" * 1_023}\r\nx\r\n" * 5}#{last}"),
          called: true
  refuses "an extension without an end", 400, chunked("5;#{"a" * 9_000}"), called: true
  refuses "a body whose framing outweighs its data", 400, chunked("#{"1\r\nx\r\n" * 9_000}#{last}"), called: true
  refuses "zeros without an end", 400, chunked("0" * 100), called: true
  refuses "trailers above the limit of bytes", 431, chunked("#{hello}0\r\nX-A: #{"b" * 33_000}\r\n\r\n"), called: true
  refuses "trailers above the limit of lines", 431,
          chunked("#{hello}0\r\n#{(1..99).map { |number| "X-#{number}: a\r\n" }.join}\r\n"), called: true
end
