# frozen_string_literal: true

# test: sanitize

require "test_helper"
require_relative "parsing_helpers"
require_relative "rule_table"

# What RFC 9112 and RFC 9110 require of a server that parses a request's head, section by section. Each head is fed
# whole, byte by byte, and cut once everywhere.
class RequestRulesTest < Minitest::Test
  include ParsingHelpers
  extend RuleTable

  def check_rule(bytes, expected)
    return assert_rejected(expected.status, bytes, expected.reason) if expected.is_a?(RuleTable::Refused)

    head = assert_accepted(bytes)
    expected.each { |name, value| assert_equal [name, value], [name, head.public_send(name)] }
  end

  # A request with these header lines beside Host.
  def self.with(*lines, line: "GET / HTTP/1.1")
    "#{line}\r\nHost: a\r\n#{lines.map { |one| "#{one}\r\n" }.join}\r\n"
  end

  # A request with this request line.
  def self.line(text) = with(line: text)

  # A request with these Host lines.
  def self.hosts(*values, line: "GET / HTTP/1.1") = "#{line}\r\n#{values.map { |one| "Host: #{one}\r\n" }.join}\r\n"

  rules(
    "9112 2.1" => [
      ["field lines may be missing", "GET / HTTP/1.0\r\n\r\n", { fields: [] }],
      ["the head ends with an empty line", with("A: b"), { ending: 33 }]
    ],
    "9112 2.2" => [
      ["an empty line before the request line is ignored", "\r\n#{with}", { path: "/" }],
      ["a second empty line is not", "\r\n\r\n#{with}", refused(400)],
      ["a bare LF before the request line", "\n#{with}", refused(400)],
      ["a bare LF ends no request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", refused(400, /LF alone/)],
      ["a bare LF ends no field line", "GET / HTTP/1.1\r\nHost: a\nA: b\r\n\r\n", refused(400, /LF alone/)],
      ["a bare LF ends no head", "GET / HTTP/1.1\r\nHost: a\r\n\n", refused(400, /LF alone/)],
      ["two bare LFs end no head", "GET / HTTP/1.1\r\nHost: a\n\n", refused(400, /LF alone/)],
      ["a bare CR in a value", with("A: b\rc"), refused(400, /CR is not/)],
      ["a bare CR at the end of a value", with("A: b\r"), refused(400, /CR is not/)],
      ["a bare CR in a name", with("A\rB: c"), refused(400)],
      ["a bare CR in the request line", line("GET /\rx HTTP/1.1"), refused(400, /CR is not/)],
      ["a bare CR ends no request line", "GET / HTTP/1.1\rHost: a\r\n\r\n", refused(400)],
      ["white space before the first field line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", refused(400, /white space/)],
      ["a tab before the first field line", "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", refused(400, /white space/)],
      ["a line of white space before the first field line", "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n", refused(400)],
      ["octets are no text in some encoding", with("A: \xFF\xFE\x80"), { fields: ["host", "a", "a", "\xFF\xFE\x80".b] }]
    ],
    "9112 2.3" => [
      ["HTTP/1.1", line("GET / HTTP/1.1"), { minor: 1 }],
      ["HTTP/1.0", line("GET / HTTP/1.0"), { minor: 0 }],
      ["a higher minor version counts as the highest known", line("GET / HTTP/1.9"), { minor: 1 }],
      ["another major version is not supported", line("GET / HTTP/2.0"), refused(505)],
      ["nor is HTTP/0.9 by that name", line("GET / HTTP/0.9"), refused(505)],
      ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", refused(505)],
      ["a request of HTTP/0.9", "GET /\r\n\r\n", refused(400)],
      ["the name is case-sensitive", line("GET / http/1.1"), refused(400, /version/)],
      ["mixed case", line("GET / Http/1.1"), refused(400, /version/)],
      ["one digit each, not two minor digits", line("GET / HTTP/1.10"), refused(400, /version/)],
      ["one digit each, not two major digits", line("GET / HTTP/11.1"), refused(400, /version/)],
      ["no minor digit", line("GET / HTTP/1."), refused(400, /version/)],
      ["no point", line("GET / HTTP/11"), refused(400, /version/)],
      ["no slash", line("GET / HTTP1.1"), refused(400, /version/)],
      ["a comma for the point", line("GET / HTTP/1,1"), refused(400, /version/)],
      ["a sign", line("GET / HTTP/+1.1"), refused(400, /version/)],
      ["a letter for a digit", line("GET / HTTP/1.x"), refused(400, /version/)],
      ["another name", line("GET / HTTPS/1.1"), refused(400, /version/)],
      ["nothing", line("GET / "), refused(400)]
    ],
    "9112 3" => [
      ["one space between the parts", line("GET / HTTP/1.1"), { method: "GET", target: "/" }],
      ["two spaces before the target", line("GET  / HTTP/1.1"), refused(400, /request line is not/)],
      ["two spaces before the version", line("GET /  HTTP/1.1"), refused(400, /request line is not/)],
      ["a space at the start", line(" GET / HTTP/1.1"), refused(400)],
      ["a space at the end", line("GET / HTTP/1.1 "), refused(400, /request line is not/)],
      ["tabs for spaces", line("GET\t/\tHTTP/1.1"), refused(400)],
      ["a tab before the version", line("GET /\tHTTP/1.1"), refused(400)],
      ["a vertical tab for a space", line("GET\v/ HTTP/1.1"), refused(400)],
      ["a form feed for a space", line("GET /\fHTTP/1.1"), refused(400)],
      ["no version", line("GET /"), refused(400, /request line is not/)],
      ["a method alone", line("GET"), refused(400, /request line is not/)],
      ["no method", line(" / HTTP/1.1"), refused(400)],
      ["a space in the target is not mended", line("GET /a b HTTP/1.1"), refused(400, /request line is not/)],
      ["8000 octets at least", line("GET /#{"a" * 8_000} HTTP/1.1"), { query: "" }],
      ["a longer target than the limit", line("GET /#{"a" * 16_384} HTTP/1.1"), refused(414)],
      ["a longer method than any that is known", line("#{"A" * 16_400} / HTTP/1.1"), refused(501)]
    ],
    "9112 3.1" => [
      ["the method is case-sensitive", line("get / HTTP/1.1"), { method: "get" }],
      ["any token is a method", line("!#$%&'*+-.^_`|~1a / HTTP/1.1"), { method: "!#$%&'*+-.^_`|~1a" }],
      ["HEAD", line("HEAD / HTTP/1.1"), { method: "HEAD", head?: true }],
      ["a colon is no part of a token", line("GE:T / HTTP/1.1"), refused(400, /token/)],
      ["a slash is no part of a token", line("GE/T / HTTP/1.1"), refused(400, /token/)],
      ["brackets are no part of a token", line("GE[T / HTTP/1.1"), refused(400, /token/)],
      ["quotes are no part of a token", line("\"GET\" / HTTP/1.1"), refused(400, /token/)],
      ["a control character is no part of a token", line("GE\x01T / HTTP/1.1"), refused(400)],
      ["DEL is no part of a token", line("GE\x7FT / HTTP/1.1"), refused(400)],
      ["an octet above 127 is no part of a token", line("G\xC9T / HTTP/1.1"), refused(400)]
    ],
    "9112 3.2" => [
      ["no empty target", line("GET  HTTP/1.1"), refused(400, /request line is not/)],
      ["no fragment", line("GET /a#b HTTP/1.1"), refused(400, /fragment/)],
      ["no fragment after a query", line("GET /a?b#c HTTP/1.1"), refused(400, /fragment/)],
      ["no NUL", line("GET /a\0b HTTP/1.1"), refused(400, /control/)],
      ["no other control character", line("GET /a\x1Fb HTTP/1.1"), refused(400, /control/)],
      ["no DEL", line("GET /a\x7Fb HTTP/1.1"), refused(400, /control/)],
      ["an octet above 127 is kept", line("GET /\xE4 HTTP/1.1"), { path: "/\xE4".b }],
      ["a target needs a form", line("GET a HTTP/1.1"), refused(400, /neither a path nor/)],
      ["an HTTP/1.1 request without Host", hosts, refused(400, /no Host/)],
      ["one with two Host lines", hosts("a", "a"), refused(400, /two Host/)],
      ["one with two, in other cases of letters", "GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n",
       refused(400, /two Host/)],
      ["one with a Host list", hosts("a, b"), refused(400, /Host header is not/)],
      ["one with an invalid Host", hosts("a b"), refused(400, /Host header is not/)],
      ["one with an empty Host (9110 4.2.1)", hosts(""), refused(400, /Host header is not/)],
      ["HTTP/1.0 may have an empty one", hosts("", line: "GET / HTTP/1.0"), { host: "", authority: "" }],
      ["HTTP/1.0 may do without Host", hosts(line: "GET / HTTP/1.0"), { host: nil, authority: nil }],
      ["but not with two", hosts("a", "b", line: "GET / HTTP/1.0"), refused(400, /two Host/)]
    ],
    "9112 3.2.1" => [
      ["origin-form", line("GET /where?q=now HTTP/1.1"), { path: "/where", query: "q=now", authority: "a" }],
      ["an empty query", line("GET /? HTTP/1.1"), { path: "/", query: "" }],
      ["a question mark in the query", line("GET /a?b?c HTTP/1.1"), { path: "/a", query: "b?c" }],
      ["the path is not decoded", line("GET /%41/%2F/..//b HTTP/1.1"), { path: "/%41/%2F/..//b" }],
      ["a path that looks like an authority", line("GET //b/c HTTP/1.1"), { path: "//b/c", authority: "a" }],
      ["a query without a path", line("GET ?a HTTP/1.1"), refused(400, /neither/)]
    ],
    "9112 3.2.2" => [
      ["absolute-form, whose host counts", line("GET http://b:8/c?d HTTP/1.1"),
       { path: "/c", query: "d", authority: "b:8", host: "b", port: "8" }],
      ["without a path", line("GET http://b HTTP/1.1"), { path: "/", query: "", host: "b" }],
      ["without a path, with a query", line("GET http://b?d HTTP/1.1"), { path: "/", query: "d" }],
      ["https", line("GET https://b/ HTTP/1.1"), { path: "/", host: "b" }],
      ["the scheme is case-insensitive", line("GET HTTPs://b/ HTTP/1.1"), { host: "b" }],
      ["an IPv6 host", line("GET http://[::1]:8/ HTTP/1.1"), { host: "[::1]", port: "8" }],
      ["another scheme", line("GET ftp://b/ HTTP/1.1"), refused(400, /neither/)],
      ["no slashes", line("GET http:b HTTP/1.1"), refused(400, /neither/)],
      ["no host (9110 4.2.1)", line("GET http:///b HTTP/1.1"), refused(400, /host/)],
      ["no host but a port", line("GET http://:80/ HTTP/1.1"), refused(400, /host/)],
      ["userinfo (9110 4.2.4)", line("GET http://u:p@b/ HTTP/1.1"), refused(400, /host/)],
      ["the Host line must be there", hosts(line: "GET http://b/ HTTP/1.1"), refused(400, /no Host/)],
      ["and be valid", hosts("a b", line: "GET http://b/ HTTP/1.1"), refused(400, /Host header is not/)],
      ["HTTP/1.0 without Host", hosts(line: "GET http://b/ HTTP/1.0"), { host: "b" }]
    ],
    "9112 3.2.3" => [
      ["authority-form", line("CONNECT b:80 HTTP/1.1"), { path: "b:80", host: "b", port: "80", connect?: true }],
      ["with an IPv6 host", line("CONNECT [::1]:80 HTTP/1.1"), { host: "[::1]", port: "80" }],
      ["without a port", line("CONNECT b HTTP/1.1"), refused(400, /host:port/)],
      ["with an empty port", line("CONNECT b: HTTP/1.1"), refused(400, /host:port/)],
      ["without a host", line("CONNECT :80 HTTP/1.1"), refused(400, /host:port/)],
      ["for CONNECT alone", line("GET b:80 HTTP/1.1"), refused(400, /neither/)],
      ["CONNECT with a path", line("CONNECT /a HTTP/1.1"), refused(400, /host:port/)],
      ["CONNECT with a URL", line("CONNECT http://b:80/ HTTP/1.1"), refused(400, /host:port/)]
    ],
    "9112 3.2.4" => [
      ["asterisk-form", line("OPTIONS * HTTP/1.1"), { path: "*", query: "" }],
      ["absolute-form of the same", line("OPTIONS http://b:8001 HTTP/1.1"), { path: "*", authority: "b:8001" }],
      ["not with an empty query", line("OPTIONS http://b? HTTP/1.1"), { path: "/", query: "" }],
      ["for OPTIONS alone", line("GET * HTTP/1.1"), refused(400, /OPTIONS/)],
      ["nothing behind it", line("OPTIONS *a HTTP/1.1"), refused(400)]
    ],
    "9110 7.2" => [
      ["a name", hosts("www.Example-1.org"), { host: "www.Example-1.org", port: "" }],
      ["a port", hosts("a:8080"), { host: "a", port: "8080" }],
      ["an empty port", hosts("a:"), { host: "a", port: "" }],
      ["an IPv4 address", hosts("192.0.2.1:80"), { host: "192.0.2.1" }],
      ["an IPv6 address", hosts("[2001:db8::1]:80"), { host: "[2001:db8::1]", port: "80" }],
      ["an IPv6 address of eight groups", hosts("[1:2:3:4:5:6:7:8]"), { host: "[1:2:3:4:5:6:7:8]" }],
      ["one that ends with an IPv4 address", hosts("[::ffff:192.0.2.1]"), { host: "[::ffff:192.0.2.1]" }],
      ["the unspecified address", hosts("[::]"), { host: "[::]" }],
      ["an address of a later version", hosts("[vF.a:b]"), { host: "[vF.a:b]" }],
      ["sub-delims and percent-encoding", hosts("a!$&'()*+,;=%C3%A4"), { host: "a!$&'()*+,;=%C3%A4" }],
      ["an underscore", hosts("a_b"), { host: "a_b" }],
      ["no brackets around an IPv6 address", hosts("::1"), refused(400, /Host header is not/)],
      ["nine groups", hosts("[1:2:3:4:5:6:7:8:9]"), refused(400)],
      ["seven groups", hosts("[1:2:3:4:5:6:7]"), refused(400)],
      ["eight groups and a gap", hosts("[1:2:3:4::5:6:7:8]"), refused(400)],
      ["two gaps", hosts("[1::2::3]"), refused(400)],
      ["five digits", hosts("[12345::]"), refused(400)],
      ["a single colon at the start", hosts("[:1:2:3:4:5:6:7]"), refused(400)],
      ["a single colon at the end", hosts("[1:2:3:4:5:6:7:]"), refused(400)],
      ["an IPv4 address that is not last", hosts("[1.2.3.4::]"), refused(400)],
      ["an octet of 256", hosts("[::1.2.3.256]"), refused(400)],
      ["an octet with a leading zero", hosts("[::1.2.3.04]"), refused(400)],
      ["three octets", hosts("[::1.2.3]"), refused(400)],
      ["a zone", hosts("[fe80::1%25eth0]"), refused(400)],
      ["no closing bracket", hosts("[::1"), refused(400)],
      ["text behind the bracket", hosts("[::1]a"), refused(400)],
      ["empty brackets", hosts("[]"), refused(400)],
      ["a port that is no number", hosts("a:b"), refused(400)],
      ["two ports", hosts("a:1:2"), refused(400)],
      ["a port without a host", hosts(":80"), refused(400)],
      ["userinfo", hosts("u@a"), refused(400)],
      ["a path", hosts("a/b"), refused(400)],
      ["a scheme", hosts("http://a"), refused(400)],
      ["broken percent-encoding", hosts("a%4"), refused(400)],
      ["an octet above 127", hosts("\xE4"), refused(400)]
    ],
    "9110 5.1" => [
      ["names are case-insensitive", with("CONTENT-length: 0"),
       { fields: %w[host a content-length 0], content_length: 0 }],
      ["unknown names are passed on", with("X-Unheard-Of: 1"), { fields: %w[host a x-unheard-of 1] }],
      ["any token is a name", with("!#$%&'*+-.^`|~1a: b"), { fields: ["host", "a", "!#$%&'*+-.^`|~1a", "b"] }],
      ["one letter", with("A: b"), { fields: %w[host a a b] }],
      ["an empty name", with(": b"), refused(400, /no name/)],
      ["a name with a space", with("A B: c"), refused(400)],
      ["a name with brackets", with("A[]: c"), refused(400, /not allowed/)],
      ["a name in quotes", with("\"A\": c"), refused(400, /not allowed/)],
      ["a name with a slash", with("A/B: c"), refused(400, /not allowed/)],
      ["a name with a NUL", with("A\0: c"), refused(400, /control/)],
      ["a name with an octet above 127", with("\xC3\x84: c"), refused(400, /not allowed/)],
      ["a name with a CR that would fold onto a hyphen", with("content\rlength: 3"), refused(400)],
      ["names with underscores can't stand for others", with("Content_Length: 3"),
       { fields: %w[host a], content_length: nil }]
    ],
    "9110 5.3" => [
      ["lines of one name stay in their order", with("A: 1", "B: 2", "a: 3"), { fields: %w[host a a 1 b 2 a 3] }],
      ["two lines are one list", with("Connection: x", "Connection: close"), { keep_alive?: false }],
      ["of codings, too", with("Transfer-Encoding: gzip", "Transfer-Encoding: chunked"), refused(501)]
    ],
    "9110 5.4" => [
      ["more lines than are taken", with(*(1..100).map { |i| "a#{i}: b" }), refused(431, /100 header lines/)],
      ["as many as are taken", with(*(1..99).map { |i| "a#{i}: b" }), { line_count: 100 }],
      ["larger than is taken", with("A: #{"b" * 32_768}"), refused(431, /32768 bytes/)]
    ],
    "9110 5.5" => [
      ["white space around a value is no part of it", with("A: \t b \t "), { fields: %w[host a a b] }],
      ["but inside it is", with("A: b \t c"), { fields: ["host", "a", "a", "b \t c"] }],
      ["no white space", with("A:b"), { fields: %w[host a a b] }],
      ["an empty value", with("A:"), { fields: ["host", "a", "a", ""] }],
      ["a value of white space", with("A: \t "), { fields: ["host", "a", "a", ""] }],
      ["a colon in a value", with("A: b: c:"), { fields: ["host", "a", "a", "b: c:"] }],
      ["octets above 127 are kept", with("A: \x80\xFF"), { fields: ["host", "a", "a", "\x80\xFF".b] }],
      ["a NUL", with("A: b\0"), refused(400, /control/)],
      ["a backspace", with("A: \b"), refused(400, /control/)],
      ["a vertical tab", with("A: b\vc"), refused(400, /control/)],
      ["a form feed", with("A: b\fc"), refused(400, /control/)],
      ["an escape", with("A: \e[1m"), refused(400, /control/)],
      ["DEL", with("A: \x7F"), refused(400, /control/)]
    ],
    "9112 5.1" => [
      ["a space before the colon", with("A : b"), refused(400, /before the colon/)],
      ["a tab before the colon", with("A\t: b"), refused(400, /before the colon/)],
      ["a space before the colon of Content-Length", with("Content-Length : 3"), refused(400, /before the colon/)],
      ["no colon", with("A"), refused(400, /no colon/)],
      ["no colon on the last line", "GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n", refused(400, /no colon/)]
    ],
    "9112 5.2" => [
      ["a folded line", with("A: b", " c"), refused(400, /obs-fold/)],
      ["a line folded with a tab", with("A: b", "\tc"), refused(400, /obs-fold/)],
      ["a line folded to nothing", with("A: b", " "), refused(400, /obs-fold/)],
      ["a folded line with a colon", with("A: b", " C: d"), refused(400, /obs-fold/)],
      ["a folded Host", "GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n", refused(400, /obs-fold/)]
    ],
    "9112 6.1" => [
      ["chunked", with("Transfer-Encoding: chunked"), { chunked?: true, content_length: nil, body?: true }],
      ["in any case of letters", with("transfer-encoding: CHUNKed"), { chunked?: true }],
      ["twice", with("Transfer-Encoding: chunked, chunked"), refused(400, /twice/)],
      ["not last", with("Transfer-Encoding: chunked, gzip"), refused(400, /not the last/)],
      ["not last, in two lines", with("Transfer-Encoding: chunked", "Transfer-Encoding: gzip"), refused(400)],
      ["a coding that is not known", with("Transfer-Encoding: gzip, chunked"), refused(501)],
      ["a coding that is not known, alone", with("Transfer-Encoding: gzip"), refused(501)],
      ["identity is none any more", with("Transfer-Encoding: identity"), refused(501)],
      ["a coding whose name only starts like it", with("Transfer-Encoding: chunkedx"), refused(501)],
      ["nothing", with("Transfer-Encoding:"), refused(400, /codings/)],
      ["a parameter", with("Transfer-Encoding: chunked;a=b"), refused(400, /codings/)],
      ["in quotes", with("Transfer-Encoding: \"chunked\""), refused(400, /codings/)],
      ["with a stray octet", with("Transfer-Encoding: \xFFchunked"), refused(400, /codings/)],
      ["HTTP/1.0 has none", with("Transfer-Encoding: chunked", line: "POST / HTTP/1.0"), refused(400, /1\.0/)],
      ["with a Content-Length", with("Transfer-Encoding: chunked", "Content-Length: 3"),
       refused(400, /and Transfer-Enc/)],
      ["with a Content-Length before it", with("Content-Length: 3", "Transfer-Encoding: chunked"),
       refused(400, /and Tr/)]
    ],
    "9110 8.6" => [
      ["digits", with("Content-Length: 42"), { content_length: 42, body?: true }],
      ["zero", with("Content-Length: 0"), { content_length: 0, body?: false }],
      ["leading zeros", with("Content-Length: 000000000000000000000042"), { content_length: 42 }],
      ["the same twice", with("Content-Length: 42", "Content-Length: 42"), { content_length: 42 }],
      ["two values", with("Content-Length: 42", "Content-Length: 43"), refused(400, /two different/)],
      ["a list of the same", with("Content-Length: 42, 42"), refused(400, /not a number/)],
      ["a plus", with("Content-Length: +42"), refused(400, /not a number/)],
      ["a minus", with("Content-Length: -1"), refused(400, /not a number/)],
      ["hexadecimal", with("Content-Length: 0x2A"), refused(400, /not a number/)],
      ["a fraction", with("Content-Length: 4.2"), refused(400, /not a number/)],
      ["an exponent", with("Content-Length: 4e2"), refused(400, /not a number/)],
      ["a space inside", with("Content-Length: 4 2"), refused(400, /not a number/)],
      ["an underscore", with("Content-Length: 4_2"), refused(400, /not a number/)],
      ["digits of another script", with("Content-Length: \u0664\u0662"), refused(400, /not a number/)],
      ["nothing", with("Content-Length:"), refused(400, /not a number/)],
      ["2 to the 63rd", with("Content-Length: 9223372036854775808"), refused(413)],
      ["2 to the 64th and some", with("Content-Length: 18446744073709551620"), refused(413)]
    ],
    "9112 6.3" => [
      ["neither: no body", with(line: "POST / HTTP/1.1"), { content_length: nil, chunked?: false, body?: false }],
      ["GET may have a body", with("Content-Length: 3"), { content_length: 3 }],
      ["what follows the head is left alone", "#{with("Content-Length: 3")}abcGET", { ending: 46 }]
    ],
    "9112 9.3" => [
      ["HTTP/1.1 persists", with, { keep_alive?: true }],
      ["HTTP/1.0 does not", with(line: "GET / HTTP/1.0"), { keep_alive?: false }],
      ["unless it says so", with("Connection: keep-alive", line: "GET / HTTP/1.0"), { keep_alive?: true }],
      ["in any case of letters", with("Connection: Keep-Alive", line: "GET / HTTP/1.0"), { keep_alive?: true }],
      ["the field Keep-Alive says nothing", with("Keep-Alive: 5", line: "GET / HTTP/1.0"), { keep_alive?: false }]
    ],
    "9112 9.6" => [
      ["close", with("Connection: close"), { keep_alive?: false }],
      ["in any case of letters, in a list", with("Connection: te , CLOSE"), { keep_alive?: false }],
      ["stronger than keep-alive", with("Connection: keep-alive, close"), { keep_alive?: false }],
      ["a longer word is another option", with("Connection: closed"), { keep_alive?: true }],
      ["the HTTP/1.0 way", with("Connection: close, keep-alive", line: "GET / HTTP/1.0"), { keep_alive?: false }]
    ],
    "9110 5.6.1" => [
      ["empty elements of a list are ignored", with("Connection: , ,close,,"), { keep_alive?: false }],
      ["in codings", with("Transfer-Encoding: ,, chunked ,"), { chunked?: true }],
      ["tabs around elements", with("Connection: a\t,\tclose\t"), { keep_alive?: false }]
    ],
    "9110 7.8" => [
      ["Upgrade with its connection option", with("Upgrade: websocket", "Connection: Upgrade"),
       { upgrade: ["websocket"] }],
      ["several protocols, in two lines", with("Upgrade: a/1, b", "Upgrade: c", "Connection: upgrade"),
       { upgrade: %w[a/1 b c] }],
      ["without its connection option it does not count", with("Upgrade: websocket"), { upgrade: nil }],
      ["the option alone says nothing", with("Connection: upgrade"), { upgrade: nil }],
      ["an empty one says nothing", with("Upgrade: ,", "Connection: upgrade"), { upgrade: nil }],
      ["HTTP/1.0 has none", with("Upgrade: a", "Connection: upgrade", line: "GET / HTTP/1.0"), { upgrade: nil }]
    ],
    "9110 10.1.1" => [
      ["100-continue", with("Expect: 100-continue"), { expects_continue?: true }],
      ["in any case of letters", with("Expect: 100-Continue"), { expects_continue?: true }],
      ["HTTP/1.0 is not served with it", with("Expect: 100-continue", line: "POST / HTTP/1.0"),
       { expects_continue?: false }],
      ["another expectation", with("Expect: tea"), refused(417)],
      ["another beside it", with("Expect: 100-continue, tea"), refused(417)],
      ["another in a second line", with("Expect: 100-continue", "Expect: tea"), refused(417)],
      ["a parameter", with("Expect: 100-continue;a=b"), refused(417)],
      ["nothing is no expectation", with("Expect:"), { expects_continue?: false }]
    ]
  )

  def test_a_head_that_cannot_become_valid_is_rejected_at_once
    results = {
      "GET /a#" => 400, "GET / HTTP/1.1x" => 400, "GET / HTTQ" => 400, "GET / HTTP/1.1\r\nA b" => 400,
      "GET * HTTP/1.1\r\n" => 400, "GET / HTTP/1.1\r\n:" => 400, "GET / HTTP/1.1\r\nA\r" => 400,
      "GET / HTTP/3.0\r\n" => 505, "GET / HTTP/3.0" => nil, "CONNECT / HTTP/1.1\r\n" => 400,
      "GET / HTTP/1.1\r\n#{"a: b\r\n" * 101}" => 431, "GET / HTTP/1.1\r\n#{"a: b\r\n" * 100}" => nil
    }
    results.each { |bytes, status| assert_equal [bytes, status], [bytes, parse(bytes)&.status] }
  end
end
