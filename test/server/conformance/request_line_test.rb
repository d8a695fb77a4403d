# frozen_string_literal: true

require_relative "support/cases"

# RFC 9112, 2.2, 2.3, 3 and 3.2: the request line and the forms of its target.
class RequestLineConformanceTest < Minitest::Test
  include Conformance

  at("a:443") { [405, {}, []] }

  %w[GET POST PUT PATCH DELETE OPTIONS TRACE PROPFIND QUERY M-SEARCH get Get G].each do |method|
    accepts "the method #{method}", request(line: "#{method} / HTTP/1.1"), env: { "REQUEST_METHOD" => method }, body: ""
  end
  accepts "a method of every character of a token", request(line: "#{TOKEN.pack("C*")} / HTTP/1.1"),
          env: { "REQUEST_METHOD" => TOKEN.pack("C*") }

  {
    "a path" => ["/a/b", "/a/b", ""], "the root" => ["/", "/", ""],
    "a path of slashes" => ["//", "//", ""], "double slashes inside" => ["/a//b/", "/a//b/", ""],
    "dot segments, as they are" => ["/a/../b/./c", "/a/../b/./c", ""],
    "escaped dot segments, as they are" => ["/%2e%2E/x", "/%2e%2E/x", ""],
    "an escaped NUL, as it is" => ["/%00", "/%00", ""], "an escaped line end, as it is" => ["/%0d%0a", "/%0d%0a", ""],
    "parameters in segments" => ["/a;b=c,d/e", "/a;b=c,d/e", ""],
    "every sub-delimiter" => ["/!$&'()*+,;=:@", "/!$&'()*+,;=:@", ""],
    "unreserved characters" => ["/-._~aZ09", "/-._~aZ09", ""], "a colon in the first segment" => ["/a:b", "/a:b", ""],
    "an empty query" => ["/?", "/", ""], "a query" => ["/a?b=c&d=e", "/a", "b=c&d=e"],
    "question marks in a query" => ["/a?b?c??", "/a", "b?c??"], "slashes in a query" => ["/a?/b//", "/a", "/b//"],
    "an escaped number sign" => ["/a%23b", "/a%23b", ""], "an escaped space" => ["/a%20b?c%20d", "/a%20b", "c%20d"],
    "a plus, as it is" => ["/a+b?c+d", "/a+b", "c+d"], "a path like a URL" => ["/http://b/", "/http://b/", ""],
    "a path like a host" => ["//b/c", "//b/c", ""], "escaped bytes beyond ASCII" => ["/%C3%A4", "/%C3%A4", ""]
  }.each do |name, (target, path, query)|
    accepts name, request(line: "GET #{target} HTTP/1.1"),
            env: { "PATH_INFO" => path, "QUERY_STRING" => query, "REQUEST_URI" => target, "SCRIPT_NAME" => "",
                   "HTTP_HOST" => "a", "SERVER_NAME" => "a", "SERVER_PROTOCOL" => "HTTP/1.1" }
  end

  # RFC 9112, 3.2.2: the host of an absolute target counts, and not the Host header.
  {
    "an absolute target" => ["http://b/c?d", "/c", "d", "b", "b", nil],
    "an absolute target without a path" => ["http://b", "/", "", "b", "b", nil],
    "an absolute target with a query and no path" => ["http://b?q", "/", "q", "b", "b", nil],
    "an absolute target with a port" => ["http://b:81/x", "/x", "", "b:81", "b", "81"],
    "an absolute target with an address" => ["http://127.0.0.1:8/", "/", "", "127.0.0.1:8", "127.0.0.1", "8"],
    "an absolute target with an IPv6 address" => ["http://[::1]:81/x", "/x", "", "[::1]:81", "[::1]", "81"],
    "a scheme in capitals" => ["HTTP://b/", "/", "", "b", "b", nil],
    "a question mark after the authority's slash" => ["http://b/?", "/", "", "b", "b", nil]
  }.each do |name, (target, path, query, host, server, port)|
    expected = { "PATH_INFO" => path, "QUERY_STRING" => query, "HTTP_HOST" => host, "SERVER_NAME" => server }
    expected["SERVER_PORT"] = port if port
    accepts name, request(line: "GET #{target} HTTP/1.1"), env: expected
  end

  accepts "OPTIONS of the server", request(line: "OPTIONS * HTTP/1.1"),
          env: { "PATH_INFO" => "*", "QUERY_STRING" => "" }
  accepts "OPTIONS of the server by its URL", request(line: "OPTIONS http://a HTTP/1.1"),
          env: { "PATH_INFO" => "*", "QUERY_STRING" => "" }
  accepts "OPTIONS of a resource", request(line: "OPTIONS /a HTTP/1.1"), env: { "PATH_INFO" => "/a" }
  conform "CONNECT with an authority is rejected", request(line: "CONNECT a:443 HTTP/1.1") do |client|
    assert_equal 501, client.answer("CONNECT").status
  end

  # As Puma and nginx do, though RFC 9112 asks for percent-encoding.
  accepts "bytes above ASCII in a target", request(line: "GET /caf\xC3\xA9/\xFF?\xE2\x80\x9C HTTP/1.1"),
          env: { "PATH_INFO" => "/caf\xC3\xA9/\xFF".b, "QUERY_STRING" => "\xE2\x80\x9C".b }
  accepts "an empty line before the request", "\r\n#{request}"
  accepts "a later minor version as 1.1", request(line: "GET / HTTP/1.2"), env: { "SERVER_PROTOCOL" => "HTTP/1.1" }
  accepts "a request line of eight thousand bytes", request(line: "GET /#{"a" * 7_980} HTTP/1.1")

  {
    "a line without a version" => "GET /", "a line without a target" => "GET HTTP/1.1", "a method alone" => "GET",
    "a target alone" => "/", "two spaces before the target" => "GET  / HTTP/1.1",
    "two spaces before the version" => "GET /  HTTP/1.1", "a space at the end" => "GET / HTTP/1.1 ",
    "a tab at the end" => "GET / HTTP/1.1\t", "a tab as separator" => "GET\t/ HTTP/1.1",
    "a tab before the version" => "GET /\tHTTP/1.1", "a vertical tab as separator" => "GET\v/ HTTP/1.1",
    "a space in the target" => "GET /a b HTTP/1.1", "a fourth word" => "GET / HTTP/1.1 x",
    "a space before the method" => " GET / HTTP/1.1", "a version in small letters" => "GET / http/1.1",
    "a version of another protocol" => "GET / HTTPS/1.1", "a version with a prefix" => "GET / XHTTP/1.1",
    "a version without a minor" => "GET / HTTP/1", "a version with an empty minor" => "GET / HTTP/1.",
    "a version with an empty major" => "GET / HTTP/.1", "a minor of two digits" => "GET / HTTP/1.10",
    "a major of two digits" => "GET / HTTP/01.1", "a version with a comma" => "GET / HTTP/1,1",
    "a version with a space" => "GET / HTTP/ 1.1", "a version without a slash" => "GET / HTTP1.1",
    "a version with letters" => "GET / HTTP/x.y", "a version with a suffix" => "GET / HTTP/1.1a",
    "a version with a sign" => "GET / HTTP/1.-1", "a hexadecimal version" => "GET / HTTP/0x1.1",
    "a fragment" => "GET /a#b HTTP/1.1", "a fragment in the query" => "GET /a?b#c HTTP/1.1",
    "a fragment after an authority" => "GET http://b#c HTTP/1.1", "a relative path" => "GET a HTTP/1.1",
    "a relative path with a slash" => "GET a/b HTTP/1.1", "a query alone" => "GET ?a HTTP/1.1",
    "a target that is a fragment" => "GET # HTTP/1.1", "an asterisk for GET" => "GET * HTTP/1.1",
    "an asterisk with more" => "OPTIONS *a HTTP/1.1", "an authority for GET" => "GET a:80 HTTP/1.1",
    "a scheme that is not http" => "GET ftp://a/ HTTP/1.1", "a scheme without slashes" => "GET http:a HTTP/1.1",
    "a scheme with one slash" => "GET http:/a HTTP/1.1", "a URL without a host" => "GET http:///a HTTP/1.1",
    "a URL with a port alone" => "GET http://:80/ HTTP/1.1", "a URL with a user" => "GET http://u@a/ HTTP/1.1",
    "a URL with a user and password" => "GET http://u:p@a/ HTTP/1.1",
    "a URL with a port of letters" => "GET http://a:b/ HTTP/1.1",
    "a URL with an open bracket" => "GET http://[::1/ HTTP/1.1",
    "a URL with a name in brackets" => "GET http://[a]/ HTTP/1.1", "CONNECT with a path" => "CONNECT / HTTP/1.1",
    "CONNECT without a port" => "CONNECT a HTTP/1.1", "CONNECT with an empty port" => "CONNECT a: HTTP/1.1",
    "CONNECT with a URL" => "CONNECT http://a:1/ HTTP/1.1", "CONNECT with a path behind" => "CONNECT a:1/ HTTP/1.1",
    "a status line" => "HTTP/1.1 200 OK", "the start of a shell" => "rm -rf / HTTP/1.1",
    "a method with a colon" => "GET: / HTTP/1.1"
  }.each { |name, line| refuses name, 400, request(line:) }

  %w[HTTP/0.9 HTTP/2.0 HTTP/3.0 HTTP/9.9 HTTP/0.0].each do |version|
    refuses "the version #{version}", 505, request(line: "GET / #{version}")
  end
  refuses "a request of HTTP 0.9", 400, "GET /\r\n"
  refuses "a handshake of TLS", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03"
  refuses "nothing but NUL", 400, "\0\0\0\0"
  refuses "two empty lines before the request", 400, "\r\n\r\n#{request}"
  refuses "a bare LF before the request", 400, "\n#{request}"
  refuses "a bare CR before the request", 400, "\r#{request}"
  refuses "a request line that ends with LF", 400, "GET / HTTP/1.1\nHost: a\r\n\r\n"
  refuses "a request line that ends with CR CR LF", 400, "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"
  refuses "a bare CR in the target", 400, "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n"
  refuses "white space after the request line", 400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"

  (0..255).each do |byte|
    next if TOKEN.include?(byte) || byte == 32 # a space ends the method

    refuses "#{named(byte)} in a method", 400, request(line: "G#{byte.chr}T / HTTP/1.1".b)
  end

  [*0..31, 127].each do |byte|
    refuses "#{named(byte)} in a path", 400, request(line: "GET /a#{byte.chr}b HTTP/1.1".b)
    refuses "#{named(byte)} in a query", 400, request(line: "GET /?a#{byte.chr}b HTTP/1.1".b)
  end
  [*0..31, 127, *128.step(255, 8), 255].each do |byte|
    refuses "#{named(byte)} in an absolute target", 400, request(line: "GET http://a#{byte.chr}b/ HTTP/1.1".b)
  end
end
