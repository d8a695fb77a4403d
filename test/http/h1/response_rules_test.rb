# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/http"
require_relative "support/head_parsers"
require_relative "rule_table"

# What RFC 9112 and RFC 9110 require of a client that parses the head of a response, section by section. Each head is
# fed whole, byte by byte, and cut once everywhere. A response that can't be parsed is refused as a gateway would: with
# 502.
class ResponseRulesTest < Minitest::Test
  include Heddle::HTTP
  extend RuleTable

  def parser(**limits) = H1::ResponseParser.new(Limits.new(**limits))

  # The result of parsing the bytes whole, after checking that every other way to cut them gives the same.
  def parse(bytes, method = "GET", **limits)
    bytes = bytes.b
    whole = parser(**limits).parse(method, bytes)
    (1...bytes.bytesize).each do |cut|
      one = parser(**limits)
      first = bytes.byteslice(0, cut)
      assert_same_result whole, one.parse(method, first) || one.parse(method, bytes, 0, cut), bytes
    end
    assert_same_result whole, byte_by_byte(parser(**limits), method, bytes), bytes
    whole
  end

  def byte_by_byte(parser, method, bytes)
    buffer = "".b
    bytes.each_char do |byte|
      buffer << byte
      result = parser.parse(method, buffer, 0, buffer.bytesize - 1)
      return result if result
    end
    nil
  end

  def assert_same_result(whole, other, bytes)
    assert_equal whole.class, other.class, "cut differently: #{bytes.inspect} gives #{other.inspect}"
    return unless whole.is_a?(H1::ReceivedResponse)

    assert_equal [whole.status, whole.fields, whole.ending], [other.status, other.fields, other.ending]
  end

  def check_rule(bytes, expected, method = "GET")
    result = parse(bytes, method)
    if expected.is_a?(RuleTable::Refused)
      assert_kind_of Heddle::HTTP::Rejection, result, bytes.inspect
      assert_equal expected.status, result.status
      assert_match expected.reason, result.reason if expected.reason
    else
      assert_kind_of H1::ReceivedResponse, result, "#{bytes.inspect}: #{result.inspect}"
      expected.each { |name, value| assert_equal [name, value], [name, result.public_send(name)] }
    end
  end

  # An answer with these header lines.
  def self.with(*lines, line: "HTTP/1.1 200 OK") = "#{line}\r\n#{lines.map { |one| "#{one}\r\n" }.join}\r\n"

  def self.line(text) = with(line: text)

  NOTHING = { content_length: nil, chunked?: false, until_close?: false, body?: false }.freeze
  UNTIL_CLOSE = { content_length: nil, chunked?: false, until_close?: true, body?: true, keep_alive?: false }.freeze

  rules(
    "9112 2.2" => [
      ["an empty line before the status line", "\r\n#{with}", refused(502)],
      ["a bare LF ends no status line", "HTTP/1.1 200 OK\n\r\n", refused(502)],
      ["a bare LF ends no field line", "HTTP/1.1 200 OK\r\nA: b\n\r\n", refused(502, /LF alone/)],
      ["a bare LF ends no head", "HTTP/1.1 200 OK\r\n\n", refused(502, /LF alone/)],
      ["a bare CR in a value", with("A: b\rc"), refused(502, /CR is not/)],
      ["a bare CR in the reason", line("HTTP/1.1 200 O\rK"), refused(502)],
      ["white space before the first field line", "HTTP/1.1 200 OK\r\n A: b\r\n\r\n", refused(502, /white space/)]
    ],
    "9112 2.3" => [
      ["HTTP/1.1", line("HTTP/1.1 200 OK"), { minor: 1 }],
      ["HTTP/1.0", line("HTTP/1.0 200 OK"), { minor: 0 }],
      ["a higher minor version", line("HTTP/1.7 200 OK"), { minor: 1 }],
      ["another major version", line("HTTP/2.0 200 OK"), refused(502, /speaks HTTP.2/)],
      ["lower case", line("http/1.1 200 OK"), refused(502, /status line/)],
      ["two digits", line("HTTP/1.10 200 OK"), refused(502, /status line/)],
      ["another protocol", line("ICY 200 OK"), refused(502, /status line/)],
      ["an answer of HTTP/0.9", "<html>\r\n\r\n", refused(502, /status line/)]
    ],
    "9112 4" => [
      ["status and reason", line("HTTP/1.1 404 Not Found"), { status: 404, reason: "Not Found" }],
      ["no reason", line("HTTP/1.1 200 "), { status: 200, reason: "" }],
      ["no reason and no space", line("HTTP/1.1 200"), { status: 200, reason: "" }],
      ["a reason of other octets", line("HTTP/1.1 200 \xE4\t\xFF"), { reason: "\xE4\t\xFF".b }],
      ["a reason in which a status stands", line("HTTP/1.1 200 404 500"), { status: 200, reason: "404 500" }],
      ["a control character in the reason", line("HTTP/1.1 200 O\0K"), refused(502)],
      ["two digits", line("HTTP/1.1 20 OK"), refused(502)],
      ["four digits", line("HTTP/1.1 2000 OK"), refused(502)],
      ["no digits", line("HTTP/1.1 abc OK"), refused(502)],
      ["a sign", line("HTTP/1.1 +20 OK"), refused(502)],
      ["no status", line("HTTP/1.1 "), refused(502)],
      ["two spaces before the status", line("HTTP/1.1  200 OK"), refused(502)],
      ["a tab before the status", line("HTTP/1.1\t200 OK"), refused(502)]
    ],
    "9110 15" => [
      ["the least status", line("HTTP/1.1 100 x"), { status: 100, interim?: true }],
      ["one below", line("HTTP/1.1 099 x"), refused(502)],
      ["one that is not registered counts by its class", line("HTTP/1.1 299 x"), { status: 299 }],
      ["one beyond 599", line("HTTP/1.1 999 x"), { status: 999 }]
    ],
    "9112 5.1" => [
      ["a space before the colon", with("A : b"), refused(502, /before the colon/)],
      ["no colon", with("A"), refused(502, /no colon/)]
    ],
    "9110 5.1" => [
      ["names are case-insensitive", with("CONTENT-LENGTH: 3"), { fields: %w[content-length 3], content_length: 3 }],
      ["names with underscores are kept", with("X_A: b"), { fields: %w[x_a b] }],
      ["an empty name", with(": b"), refused(502, /no name/)],
      ["a name that is no token", with("A(b): c"), refused(502, /not allowed/)]
    ],
    "9110 5.3" => [
      ["Set-Cookie lines stay apart", with("Set-Cookie: a=b", "Set-Cookie: c=d"),
       { fields: %w[set-cookie a=b set-cookie c=d] }]
    ],
    "9110 5.5" => [
      ["white space around a value is no part of it", with("A: \t b \t"), { fields: %w[a b] }],
      ["octets above 127 are kept", with("A: \x80\xFF"), { fields: ["a", "\x80\xFF".b] }],
      ["a NUL", with("A: b\0c"), refused(502, /control/)],
      ["DEL", with("A: \x7F"), refused(502, /control/)]
    ],
    "9112 5.2" => [
      ["a folded line becomes a space", with("A: b", " c"), { fields: ["a", "b c"] }],
      ["with all the white space around it", with("A: b \t", "\t  c"), { fields: ["a", "b c"] }],
      ["twice", with("A: b", " c", "\td", "E: f"), { fields: ["a", "b c d", "e", "f"] }],
      ["before the value", with("A:", " b"), { fields: %w[a b] }],
      ["after the value", with("A: b", " ", "C: d"), { fields: %w[a b c d] }],
      ["nothing but folds", with("A:", " ", "\t"), { fields: ["a", ""] }],
      ["a folded length", with("Content-Length:", " 3"), { content_length: 3 }],
      ["a length that a fold divides", with("Content-Length: 3", " 4"), refused(502, /not a single number/)],
      ["a folded list", with("Connection: x,", " close"), { keep_alive?: false }]
    ],
    "9112 6.1" => [
      ["chunked", with("Transfer-Encoding: chunked"),
       { chunked?: true, content_length: nil, body?: true, keep_alive?: true }],
      ["in any case of letters", with("Transfer-Encoding: Chunked"), { chunked?: true }],
      ["twice", with("Transfer-Encoding: chunked, chunked"), refused(502, /twice/)],
      ["not last", with("Transfer-Encoding: chunked, gzip"), refused(502)],
      ["one that was not asked for", with("Transfer-Encoding: gzip, chunked"), refused(502, /this client supports/)],
      ["one that was not asked for, alone", with("Transfer-Encoding: gzip"), refused(502)],
      ["no coding", with("Transfer-Encoding:"), refused(502)],
      ["HTTP/1.0 has none", with("Transfer-Encoding: chunked", line: "HTTP/1.0 200 OK"), refused(502, /1\.0/)]
    ],
    "9112 6.3" => [
      ["1: HEAD", with("Content-Length: 3"), NOTHING.merge(keep_alive?: true), "HEAD"],
      ["1: HEAD, chunked", with("Transfer-Encoding: chunked"), NOTHING, "HEAD"],
      ["1: HEAD without a length", with, NOTHING.merge(keep_alive?: true), "HEAD"],
      ["1: 204", line("HTTP/1.1 204 No Content"), NOTHING.merge(keep_alive?: true)],
      ["1: 204 with a length", with("Content-Length: 3", line: "HTTP/1.1 204 x"), NOTHING],
      ["1: 304", with("Content-Length: 3", line: "HTTP/1.1 304 x"), NOTHING.merge(keep_alive?: true)],
      ["1: 100", line("HTTP/1.1 100 Continue"), NOTHING.merge(interim?: true, keep_alive?: true)],
      ["1: 103 with a length", with("Content-Length: 3", "Link: </a>", line: "HTTP/1.1 103 x"),
       NOTHING.merge(interim?: true)],
      ["1: 205 may say that it has none", with("Content-Length: 0", line: "HTTP/1.1 205 x"),
       { content_length: 0, body?: false }],
      ["2: CONNECT that succeeds", line("HTTP/1.1 200 OK"),
       NOTHING.merge(upgrade?: true, keep_alive?: false), "CONNECT"],
      ["2: its length and coding say nothing", with("Content-Length: 3", "Transfer-Encoding: chunked"),
       NOTHING.merge(upgrade?: true), "CONNECT"],
      ["2: CONNECT that fails", with("Content-Length: 3", line: "HTTP/1.1 403 x"),
       { content_length: 3, upgrade?: false }, "CONNECT"],
      ["3: coding and length", with("Transfer-Encoding: chunked", "Content-Length: 3"),
       refused(502, /and Transfer-Encoding/)],
      ["3: length and coding", with("Content-Length: 3", "Transfer-Encoding: chunked"),
       refused(502, /and Transfer-Encoding/)],
      ["5: two lengths", with("Content-Length: 3", "Content-Length: 4"), refused(502, /two different/)],
      ["5: no number", with("Content-Length: three"), refused(502, /not a single number/)],
      ["5: a negative one", with("Content-Length: -3"), refused(502, /not a single number/)],
      ["5: an empty one", with("Content-Length:"), refused(502, /not a single number/)],
      ["5: a list of the same", with("Content-Length: 3, 3"), { content_length: 3 }],
      ["5: a list of others", with("Content-Length: 3, 4"), refused(502, /not a single number/)],
      ["5: the same twice", with("Content-Length: 3", "Content-Length: 3"), { content_length: 3 }],
      ["6: a length", with("Content-Length: 3"),
       { content_length: 3, body?: true, keep_alive?: true, until_close?: false }],
      ["6: zero", with("Content-Length: 0"), { content_length: 0, body?: false, keep_alive?: true }],
      ["6: one beyond all limits", with("Content-Length: 99999999999999999999"), refused(502, /larger/)],
      ["8: until the connection closes", with, UNTIL_CLOSE],
      ["8: though it says keep-alive", with("Connection: keep-alive", line: "HTTP/1.0 200 OK"), UNTIL_CLOSE],
      ["8: an error", line("HTTP/1.0 500 x"), UNTIL_CLOSE]
    ],
    "9112 9.3" => [
      ["HTTP/1.1 persists", with("Content-Length: 0"), { keep_alive?: true }],
      ["HTTP/1.0 does not", with("Content-Length: 0", line: "HTTP/1.0 200 OK"), { keep_alive?: false }],
      ["unless it says so", with("Content-Length: 0", "Connection: keep-alive", line: "HTTP/1.0 200 OK"),
       { keep_alive?: true }]
    ],
    "9112 9.6" => [
      ["close", with("Content-Length: 0", "Connection: close"), { keep_alive?: false }],
      ["in any case of letters, in a list", with("Content-Length: 0", "Connection: a, Close"), { keep_alive?: false }]
    ],
    "9110 7.8" => [
      ["101 is the end of HTTP/1", with("Upgrade: websocket", "Connection: upgrade", line: "HTTP/1.1 101 x"),
       NOTHING.merge(upgrade?: true, interim?: false, keep_alive?: false)],
      ["an offer to upgrade is not", with("Upgrade: h2c", "Connection: upgrade", "Content-Length: 0"),
       { upgrade?: false }]
    ]
  )

  def test_an_incomplete_head_asks_for_more
    ["", "H", "HTTP/1.1", "HTTP/1.1 200", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r", "HTTP/1.1 200 OK\r\n",
     "HTTP/1.1 200 OK\r\nA: b\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\r"].each do |bytes|
      assert_nil parse(bytes), bytes.inspect
    end
  end

  def test_limits_hold_for_answers_too
    lines = (1..5).map { |i| "a#{i}: b\r\n" }.join
    assert_equal 502, parse("HTTP/1.1 200 OK\r\n#{lines}\r\n", header_count: 4).status
    assert_equal 200, parse("HTTP/1.1 200 OK\r\n#{lines}\r\n", header_count: 5).status
    assert_equal 502, parse("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n d\r\n\r\n", header_count: 2).status, "folds count"
    assert_match(/longer than 1024/, parse("HTTP/1.1 200 OK\r\nA: #{"b" * 1_024}\r\n\r\n", header_limit: 1_024).reason)
    reason = parser(request_line_limit: 8_192).parse("GET", "HTTP/1.1 200 #{"a" * 8_192}".b).reason
    assert_match(/status line is longer than 8192/, reason)
  end

  def test_a_head_is_read_from_the_middle_of_a_buffer
    bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".b
    head = parser.parse("GET", "xxxx".b + bytes + bytes, 4)

    assert_equal 4 + bytes.bytesize, head.ending
  end
end
