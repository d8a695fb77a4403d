# frozen_string_literal: true

require_relative "support/cases"

# A request over a limit is answered with that limit's own status: 413, 414, 431; one exactly at the limit is accepted.
class LimitsConformanceTest < Minitest::Test
  include Conformance

  served_with request_line_limit: 8_192, header_limit: 2_048, header_count: 10, body_limit: 1_000

  at("/unread") { [200, {}, ["unread"]] }

  # The line without its end.
  class << self
    def line(size) = "GET /#{"a" * (size - "GET / HTTP/1.1".bytesize)} HTTP/1.1"

    # All header lines and the line that ends them.
    def header(size)
      line = "X-A: "
      request("#{line}#{"b" * (size - "Host: a\r\n".bytesize - line.bytesize - 4)}")
    end
  end

  accepts "a request line at the limit", request(line: line(8_192))
  refuses "a request line above the limit", 414, request(line: line(8_193))
  refuses "a request line far above the limit", 414, request(line: line(100_000))
  refuses "a request line above the limit before it ends", 414, line(8_194).delete_suffix(" HTTP/1.1").ljust(8_194, "a")
  refuses "a query above the limit", 414, request(line: "GET /?#{"a" * 8_192} HTTP/1.1")
  refuses "an absolute target above the limit", 414, request(line: "GET http://a/#{"a" * 8_192} HTTP/1.1")
  refuses "a method that has no end", 501, "G" * 9_000
  refuses "a method above the limit", 501, request(line: "#{"G" * 9_000} / HTTP/1.1")
  refuses "rubbish above the limit", 400, "\xFF".b * 9_000

  accepts "header lines at the limit", header(2_048)
  refuses "header lines above the limit", 431, header(2_049)
  refuses "header lines far above the limit", 431, header(100_000)
  refuses "a header line that has no end", 431, "GET / HTTP/1.1\r\nHost: a\r\nX-A: #{"b" * 3_000}"
  refuses "a header name that has no end", 431, "GET / HTTP/1.1\r\nHost: a\r\n#{"b" * 3_000}"
  refuses "many short header lines above the limit of bytes", 431, request(*["A: b"] * 500)
  accepts "as many header lines as allowed", request(*(1..9).map { |number| "X-#{number}: a" })
  refuses "one header line more than allowed", 431, request(*(1..10).map { |number| "X-#{number}: a" })
  refuses "too many equal header lines", 431, request(*["X-A: b"] * 10)
  refuses "too many lines though they are dropped", 431, request(*["X_A: b"] * 10)
  refuses "too many header lines after a good request", 431, get("/1") + request(*["X-A: b"] * 10), before: 1

  accepts "a body at the limit", sized("x" * 1_000), body: "x" * 1_000
  refuses "a body above the limit", 413, sized("x" * 1_001)
  refuses "a body above the limit before it comes", 413, post("Content-Length: 1001")
  refuses "a body above the limit that nobody reads", 413, post("Content-Length: 1001", path: "/unread")
  refuses "a body above the limit of GET", 413, request("Content-Length: 1001")
  accepts "a chunked body at the limit", chunked("3e8\r\n#{"x" * 1_000}\r\n0\r\n\r\n"), body: "x" * 1_000
  accepts "a chunked body at the limit in two chunks",
          chunked("1f4\r\n#{"x" * 500}\r\n1f4\r\n#{"x" * 500}\r\n0\r\n\r\n"), body: "x" * 1_000
  refuses "a chunked body above the limit", 413, chunked("3e9\r\n#{"x" * 1_001}\r\n0\r\n\r\n"), called: true
  refuses "a chunk above the limit before it comes", 413, chunked("3e9\r\n"), called: true
  refuses "a chunked body above the limit in two chunks", 413,
          chunked("1f4\r\n#{"x" * 500}\r\n1f5\r\n#{"x" * 501}\r\n0\r\n\r\n"), called: true
  refuses "a body above the limit after a good request", 413, get("/1") + post("Content-Length: 1001"), before: 1

  refuses "header and trailer lines above the limit together", 431,
          chunked("1\r\nx\r\n0\r\nX-B: #{"c" * 1_500}\r\n\r\n", "X-A: #{"b" * 1_000}"), called: true
  refuses "header and trailer lines that are too many together", 431,
          chunked("1\r\nx\r\n0\r\n#{"A: b\r\n" * 5}\r\n", *["A: b"] * 5), called: true
  refuses "a trailer that has no end", 431, chunked("1\r\nx\r\n0\r\nX-B: #{"c" * 3_000}"), called: true
end
