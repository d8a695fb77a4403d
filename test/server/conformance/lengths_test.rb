# frozen_string_literal: true

require_relative "support/cases"

# RFC 9112, 6: how long a body is.
class LengthsConformanceTest < Minitest::Test
  include Conformance

  accepts "no length as no body", post, env: { "CONTENT_LENGTH" => nil }, body: ""
  accepts "a length of zero", post("Content-Length: 0"), body: ""
  accepts "a length", post("Content-Length: 5", body: "hello"), env: { "CONTENT_LENGTH" => "5" }, body: "hello"
  accepts "white space around a length", post("Content-Length: \t 5 \t", body: "hello"), body: "hello"
  accepts "zeros before a length", post("Content-Length: 0000005", body: "hello"), body: "hello"
  accepts "a length in another spelling", post("cONTENT-lENGTH: 5", body: "hello"), body: "hello"
  accepts "the same length twice", post("Content-Length: 5", "Content-Length: 5", body: "hello"), body: "hello"
  accepts "a body of every byte", sized([*0..255].pack("C*")), body: [*0..255].pack("C*")
  accepts "a body that looks like a request", sized(request), body: request
  accepts "a body of line ends", sized("\r\n\r\n\r\n"), body: "\r\n\r\n\r\n"
  %w[GET DELETE OPTIONS PATCH PUT QUERY TRACE get].each do |method|
    accepts "a body of #{method}", request("Content-Length: 3", line: "#{method} / HTTP/1.1", body: "abc"), body: "abc"
    accepts "a chunked body of #{method}",
            request("Transfer-Encoding: chunked", line: "#{method} / HTTP/1.1", body: "3\r\nabc\r\n0\r\n\r\n"),
            body: "abc"
  end
  [1, 65_535, 65_536, 65_537, 200_000].each do |size|
    bytes = Random.new(size).bytes(size)
    accepts "a body of #{size} bytes", sized(bytes), body: bytes
    accepts "a chunked body of #{size} bytes", chunked("#{size.to_s(16)}\r\n#{bytes}\r\n0\r\n\r\n".b), body: bytes
  end

  ["+5", "-5", "5 5", "5, 5", "5,5", "5,", ",5", "5;", "5.0", "5e0", "0x5", "5a", "a", "", "\"5\"", "5\t5", "٥", "5_0",
   "-0", "+0",
   "5 ;", "0 0"].each do |value|
    refuses "the length #{value.inspect.unpack1("H*")}", 400, post("Content-Length: #{value}", body: "hello")
  end
  refuses "two lengths", 400, post("Content-Length: 5", "Content-Length: 6", body: "hello")
  refuses "two lengths, apart", 400, post("Content-Length: 0", "X-A: b", "content-length: 5", body: "hello")
  refuses "a length and an empty one", 400, post("Content-Length: 5", "Content-Length:", body: "hello")
  %w[1073741825 99999999999999999999 18446744073709551616 18446744073709551621 9223372036854775808].each do |length|
    refuses "the length #{length}", 413, post("Content-Length: #{length}", body: "hello")
  end

  ["chunked", "Chunked", "CHUNKED", " \t chunked \t "].each do |coding|
    accepts "the coding #{coding.unpack1("H*")}", post("Transfer-Encoding:#{coding}", body: "5\r\nhello\r\n0\r\n\r\n"),
            env: { "CONTENT_LENGTH" => "5", "HTTP_TRANSFER_ENCODING" => nil }, body: "hello"
  end
  accepts "a coding in another spelling", post("tRANSFER-eNCODING: chunked", body: "0\r\n\r\n"), body: ""

  body = "5\r\nhello\r\n0\r\n\r\n"
  refuses "a coding with a length", 400, post("Transfer-Encoding: chunked", "Content-Length: 15", body:)
  refuses "a length with a coding", 400, post("Content-Length: 15", "Transfer-Encoding: chunked", body:)
  refuses "a coding with a length of zero", 400, post("Content-Length: 0", "Transfer-Encoding: chunked", body:)
  conform "refuses an unknown coding with a length",
          post("Content-Length: 15", "Transfer-Encoding: gzip", body:) do |client|
    answer = client.answer

    assert_includes [400, 501], answer.status # it is wrong in both ways
    assert_rejection(answer.status, answer)
  end
  {
    "gzip" => 501, "gzip, chunked" => 501, "deflate" => 501, "compress" => 501, "identity" => 501,
    "identity, chunked" => 501,
    "xchunked" => 501, "chunkedx" => 501, "chunk" => 501, "br,chunked" => 501, "chunked, gzip" => 400,
    "chunked, chunked" => 400, "chunked,identity" => 400, "chunked, gzip, chunked" => 400, "" => 400,
    "chunked;a=b" => 400,
    "\"chunked\"" => 400, "chunked chunked" => 400, "chunked gzip" => 400, "(chunked)" => 400, "chunked/1" => 400,
    "\xC4\x8Dhunked" => 400, "chunked\xFF" => 400, "=chunked" => 400, "chunked:" => 400
  }.each do |coding, status|
    refuses "the coding #{coding.unpack1("H*")}", status, post("Transfer-Encoding: #{coding}", body:)
  end
  refuses "chunked twice", 400, post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body:)
  refuses "chunked and then gzip, in two lines", 400,
          post("Transfer-Encoding: chunked", "Transfer-Encoding: gzip", body:)
  refuses "gzip and then chunked, in two lines", 501,
          post("Transfer-Encoding: gzip", "Transfer-Encoding: chunked", body:)
  refuses "chunked and an empty coding, in two lines", 400, post("Transfer-Encoding:", "Transfer-Encoding:", body:)
  refuses "a coding on GET that is not known", 501, request("Transfer-Encoding: gzip")
end
