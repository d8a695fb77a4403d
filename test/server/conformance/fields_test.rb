# frozen_string_literal: true

require_relative "support/cases"

# RFC 9112, 5 and RFC 9110, 5: header lines.
class FieldsConformanceTest < Minitest::Test
  include Conformance

  {
    "no white space before a value" => ["X-A:b", "b"], "much white space before a value" => ["X-A: \t  \t b", "b"],
    "white space after a value" => ["X-A: b \t ", "b"], "an empty value" => ["X-A:", ""],
    "a value of white space" => ["X-A: \t ", ""], "white space inside a value, as it is" => ["X-A: b \t  c", "b \t  c"],
    "colons in a value" => ["X-A: b:c: d", "b:c: d"], "a colon that starts a value" => ["X-A: :b", ":b"],
    "two colons" => ["X-A:: b", ": b"], "quotes in a value, as they are" => ["X-A: \"b, \\\"c\"", "\"b, \\\"c\""],
    "a comment in a value" => ["X-A: b (c;d)", "b (c;d)"], "an empty list" => ["X-A: , ,", ", ,"],
    "every visible character in a value" => ["X-A: #{[*33..126].pack("C*")}", [*33..126].pack("C*")],
    "bytes beyond ASCII, as they are" => ["X-A: b#{[*128..255].pack("C*")}c".b, "b#{[*128..255].pack("C*")}c".b],
    "bytes beyond ASCII at both ends" => ["X-A: \xFFb\x80".b, "\xFFb\x80".b],
    "a long value" => ["X-A: #{"b" * 8_000}", "b" * 8_000],
    "a name in small letters" => ["x-a: b", "b"], "a name in capitals" => ["X-A: b", "b"],
    "a value that looks like a header" => ["X-A: X-B: c", "X-B: c"]
  }.each do |name, (line, value)|
    accepts name, request(line), env: { "HTTP_X_A" => value, "HTTP_X_B" => nil }
    accepts "#{name}, in the first line", request(host: [line, "Host: a"]), env: { "HTTP_X_A" => value }
  end

  accepts "a name of every character of a token but the underscore",
          request("#{(TOKEN - [95]).pack("C*")}: b"),
          env: { "HTTP_#{(TOKEN - [95]).pack("C*").upcase.tr("-", "_")}" => "b" }
  accepts "a name of one character", request("A: b"), env: { "HTTP_A" => "b" }
  accepts "a name of digits", request("1: b"), env: { "HTTP_1" => "b" }
  accepts "a name of two hundred characters", request("#{"n" * 200}: b"), env: { "HTTP_#{"N" * 200}" => "b" }
  accepts "lines of one name as a list", request("X-A: b", "X-B: e", "x-a: c", "X-A: d"),
          env: { "HTTP_X_A" => "b, c, d", "HTTP_X_B" => "e" }
  accepts "lines of cookies as one", request("Cookie: a=b; c=d", "Cookie: e=f"),
          env: { "HTTP_COOKIE" => "a=b; c=d; e=f" }
  accepts "Content-Type without a prefix", request("Content-Type: text/plain"),
          env: { "CONTENT_TYPE" => "text/plain", "HTTP_CONTENT_TYPE" => nil }
  accepts "Content-Length without a prefix", sized("abc"),
          env: { "CONTENT_LENGTH" => "3", "HTTP_CONTENT_LENGTH" => nil }, body: "abc"
  accepts "a hundred lines", request(*(1..99).map { |number| "X-#{number}: #{number}" }),
          env: { "HTTP_X_1" => "1", "HTTP_X_99" => "99" }

  # A client must not be able to forge what a proxy says (http.md: X_Forwarded_For).
  {
    "X_Forwarded_For: 1.2.3.4" => "HTTP_X_FORWARDED_FOR", "X-Forwarded_For: 1" => "HTTP_X_FORWARDED_FOR",
    "_: b" => "HTTP__", "Content_Type: a/b" => "CONTENT_TYPE", "content_length: 5" => "CONTENT_LENGTH",
    "Transfer_Encoding: chunked" => "HTTP_TRANSFER_ENCODING", "Host_: b" => "HTTP_HOST_"
  }.each do |line, key|
    accepts "and drops #{line}", request(line), env: { key => nil }, body: ""
  end
  accepts "and drops a forged name beside the right one", request("X-Real-IP: 1.1.1.1", "X_Real_IP: 2.2.2.2"),
          env: { "HTTP_X_REAL_IP" => "1.1.1.1" }

  # Fields that mean something to a server, where they mean nothing.
  {
    "an unknown Upgrade" => ["Upgrade: irc/6.9", "Connection: Upgrade"],
    "an upgrade to HTTP 2" => ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk"],
    "an Upgrade that Connection does not name" => ["Upgrade: websocket"], "TE" => ["TE: trailers, gzip;q=0.5"],
    "Keep-Alive" => ["Keep-Alive: timeout=5, max=1000"], "Trailer" => ["Trailer: Expires"], "Via" => ["Via: 1.0 a"],
    "Proxy-Connection" => ["Proxy-Connection: close"], "Max-Forwards" => ["Max-Forwards: 0"],
    "Range" => ["Range: bytes=0-1"], "an HTTP2-Settings alone" => ["HTTP2-Settings: AAMAAABk"],
    "Connection that names Host" => ["Connection: Host"],
    "Connection that names a length" => ["Connection: Content-Length"],
    "an Accept that nothing meets" => ["Accept: x/y"], "a Date of yesterday" => ["Date: Tue, 15 Nov 1994 08:12:31 GMT"]
  }.each { |name, lines| accepts name, request(*lines) }

  {
    "a space before the colon" => "X-A : b", "a tab before the colon" => "X-A\t: b",
    "spaces before the colon" => "X-A   : b",
    "no colon" => "X-A", "no colon and a space" => "X-A b", "no name" => ": b", "nothing but a colon" => ":",
    "a space alone" => " ", "a tab alone" => "\t", "a space before the name" => " X-A: b",
    "a tab before the name" => "\tX-A: b",
    "a space in the name" => "X A: b", "a folded line" => "X-A: b\r\n c", "a line folded with a tab" => "X-A: b\r\n\tc",
    "a line folded to nothing" => "X-A: b\r\n ", "a folded empty value" => "X-A:\r\n b",
    "a line that ends with LF" => "X-A: b\nX-B: c", "a line that ends with CR" => "X-A: b\rX-B: c",
    "a line that ends with CR CR LF" => "X-A: b\r", "a line that ends with LF CR" => "X-A: b\n\rX-B: c",
    "a quoted name" => "\"X-A\": b", "a request line as header" => "GET /b HTTP/1.1",
    "a hidden Transfer-Encoding behind a space" => "Transfer-Encoding : chunked",
    "a hidden Transfer-Encoding behind a fold" => "X-A: b\r\n Transfer-Encoding: chunked",
    "a hidden Content-Length behind a tab" => "Content-Length\t: 5",
    "a hidden Content-Length behind a vertical tab" => "\vContent-Length: 5",
    "a hidden Host behind a form feed" => "\fHost: b"
  }.each do |name, line|
    refuses "#{name}, in the last line", 400, request(line)
    refuses "#{name}, before another", 400, request(line, "X-C: d")
    refuses "#{name}, in the first line", 400, request(host: [line, "Host: a"])
  end

  (0..255).each do |byte|
    next if TOKEN.include?(byte) || byte == 58 # a colon ends the name

    refuses "#{named(byte)} in a name", 400, request("X#{byte.chr}A: b".b)
  end

  [*0..31, 127].each do |byte|
    next if byte == 9

    refuses "#{named(byte)} in a value", 400, request("X-A: b#{byte.chr}c".b)
    refuses "#{named(byte)} at the start of a value", 400, request("X-A: #{byte.chr}b".b)
    refuses "#{named(byte)} at the end of a value", 400, request("X-A: b#{byte.chr}".b)
  end

  refuses "a head that ends with LF LF", 400, "GET / HTTP/1.1\r\nHost: a\n\n"
  refuses "a head that ends with CR LF LF", 400, "GET / HTTP/1.1\r\nHost: a\r\n\n"
  refuses "a head of LF alone", 400, "GET / HTTP/1.1\nHost: a\n\n"
  refuses "a head that ends with CR CR", 400, "GET / HTTP/1.1\r\nHost: a\r\r"
  refuses "a head that ends with CR LF CR and a letter", 400, "GET / HTTP/1.1\r\nHost: a\r\n\rG"
end
