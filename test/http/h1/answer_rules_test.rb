# frozen_string_literal: true

require "test_helper"
require_relative "parsing_helpers"

# What RFC 9110 and 9112 require of the head of a response: one row for each rule.
class AnswerRulesTest < Minitest::Test
  include ParsingHelpers

  DATE = "date: Thu, 01 Jan 1970 00:00:00 GMT"
  GET = "GET / HTTP/1.1"
  OLD = "GET / HTTP/1.0"
  OLD_ON = ["GET / HTTP/1.0", "Connection: keep-alive"].freeze
  OFFER = [GET, "Upgrade: websocket, x", "Connection: upgrade"].freeze
  HEAD = "HEAD / HTTP/1.1"
  CONNECT = "CONNECT a:1 HTTP/1.1"
  CHUNKED = "transfer-encoding: chunked"
  CLOSE = "connection: close"
  FIVE = { "content-length" => "5" }.freeze

  # Section, its rule, the request line and further lines, status, headers and options of the response; the lines that
  # are sent after the status line, except the date; framing, and whether the connection stays open.
  FRAMING = [
    ["9112, 6.1", "content of unknown length is chunked", GET, 200, {}, {}, [CHUNKED], :chunked, true],
    ["9112, 6.1", "an HTTP/1.0 client gets no coding", OLD_ON, 200, {}, {}, [CLOSE], :close, false],
    ["9112, 6.1", "not even one that the application names", OLD, 200, { "transfer-encoding" => "chunked" }, {},
     [CLOSE], :close, false],
    ["9112, 6.1", "chunked is not applied twice", GET, 200, { "transfer-encoding" => "chunked" }, {}, [CHUNKED],
     :chunked, true],
    ["9112, 6.1", "no coding with 204", GET, 204, { "transfer-encoding" => "chunked" }, {}, [], :none, true],
    ["9112, 6.1", "no coding with 101", OFFER, 101, { "upgrade" => "x", "transfer-encoding" => "chunked" }, {},
     ["upgrade: x", "connection: upgrade"], :raw, false],
    ["9112, 6.1", "no coding with success of CONNECT", CONNECT, 200, { "transfer-encoding" => "chunked" }, {}, [],
     :raw, false],
    ["9112, 6.2", "a length is told where it is known", GET, 200, {}, { length: 5 }, ["content-length: 5"], :length,
     true],
    ["9112, 6.2", "no length with a coding", GET, 200, FIVE.merge("transfer-encoding" => "chunked"), {}, [CHUNKED],
     :chunked, true],
    ["9112, 6.2", "nor to HEAD", HEAD, 200, FIVE.merge("transfer-encoding" => "chunked"), {}, [], :none, true],
    ["9112, 6.3", "content of no length is told so", GET, 200, {}, { length: 0 }, ["content-length: 0"], :length, true],
    ["9112, 6.3", "without length and coding the connection ends it", OLD, 200, {}, {}, [CLOSE], :close, false],
    ["9112, 6.3", "an HTTP/1.0 client gets a length", OLD, 200, FIVE, {}, ["content-length: 5", CLOSE], :length, false],
    ["9110, 6.4.1", "304 has no content", GET, 304, FIVE, {}, [], :none, true],
    ["9110, 6.4.1", "204 has no content", GET, 204, FIVE, {}, [], :none, true],
    ["9110, 8.6", "204 tells no length, not to HEAD either", HEAD, 204, FIVE, {}, [], :none, true],
    ["9110, 8.6", "101 tells no length", OFFER, 101, FIVE.merge("upgrade" => "x"), {},
     ["upgrade: x", "connection: upgrade"], :raw, false],
    ["9110, 8.6", "success of CONNECT tells no length", CONNECT, 299, FIVE, {}, [], :raw, false],
    ["9110, 8.6", "failure of CONNECT is an answer like others", CONNECT, 300, FIVE, {}, ["content-length: 5"], :length,
     true],
    ["9110, 8.6", "equal lengths are one", GET, 200, { "content-length" => "5", "Content-Length" => %w[5 05] }, {},
     ["content-length: 5"], :length, true],
    ["9110, 9.3.2", "HEAD is told the length of GET", HEAD, 200, FIVE, {}, ["content-length: 5"], :none, true],
    ["9110, 9.3.2", "HEAD is told nothing where nobody knows", HEAD, 200, {}, {}, [], :none, true],
    ["9110, 9.3.2", "methods are case-sensitive", "head / HTTP/1.1", 200, {}, {}, [CHUNKED], :chunked, true],
    ["9110, 9.3.6", "CONNECT opens a tunnel", CONNECT, 204, {}, {}, [], :raw, false],
    ["9110, 15.3.6", "205 has no content and says so", GET, 205, FIVE, { length: 5 }, ["content-length: 0"], :none,
     true],
    ["9110, 15.3.6", "205 to HEAD", HEAD, 205, {}, {}, ["content-length: 0"], :none, true],
    ["9110, 15.3.6", "205 is not chunked", GET, 205, { "transfer-encoding" => "chunked" }, {}, ["content-length: 0"],
     :none, true]
  ].freeze

  CONNECTION = [
    ["9112, 9.3", "HTTP/1.1 goes on unless told", GET, 200, FIVE, {}, ["content-length: 5"], :length, true],
    ["9112, 9.3", "HTTP/1.0 that asks goes on, and is told", OLD_ON, 200, FIVE, {},
     ["content-length: 5", "connection: keep-alive"], :length, true],
    ["9112, 9.3", "HTTP/1.0 that does not ask ends", OLD, 204, {}, {}, [CLOSE], :none, false],
    ["9112, 9.3", "an application can't keep it open", OLD, 204, { "connection" => "keep-alive" }, {}, [CLOSE], :none,
     false],
    ["9112, 9.6", "a client that closes is answered in kind", [GET, "Connection: x, Close"], 204, {}, {}, [CLOSE],
     :none, false],
    ["9112, 9.6", "a server that closes says so", GET, 204, {}, { keep_alive: false }, [CLOSE], :none, false],
    ["9112, 9.6", "an application that closes says so", GET, 204, { "connection" => "a,\tCLOSE ,b" }, {}, [CLOSE],
     :none, false],
    ["9112, 9.6", "in any of several values", GET, 204, { "connection" => %w[a close] }, {}, [CLOSE], :none, false],
    ["9112, 9.6", "closed is not close", GET, 204, { "connection" => "closed, xclose" }, {}, [], :none, true],
    ["9112, 9.6", "content that ends with the connection says so", GET, 200, {}, { until_close: true }, [CLOSE], :close,
     false],
    ["9112, 6.1", "an application that chunks by itself is taken at its word", GET, 200,
     { "transfer-encoding" => "chunked" }, { until_close: true }, [CHUNKED, CLOSE], :close, false],
    ["9112, 6.1", "but not for HTTP/1.0", OLD, 200, { "transfer-encoding" => "chunked" }, { until_close: true },
     [CLOSE], :close, false],
    ["9110, 7.6.1", "fields of one connection don't leak into another", GET, 204,
     { "connection" => "x", "keep-alive" => "timeout=5", "proxy-connection" => "keep-alive" }, {}, [], :none, true],
    ["9110, 7.8", "who sends Upgrade names it in Connection", GET, 426, FIVE.merge("upgrade" => "h2c"), {},
     ["upgrade: h2c", "content-length: 5", "connection: upgrade"], :length, true],
    ["9110, 7.8", "with any status", GET, 200, FIVE.merge("Upgrade" => "h2c"), {},
     ["upgrade: h2c", "content-length: 5", "connection: upgrade"], :length, true],
    ["9110, 7.8", "and to HTTP/1.0", OLD_ON, 204, { "upgrade" => "h2c" }, {},
     ["upgrade: h2c", "connection: upgrade", "connection: keep-alive"], :none, true],
    ["9110, 7.8", "Connection names no Upgrade that is not there", GET, 204, { "connection" => "upgrade" }, {}, [],
     :none, true],
    ["9110, 7.8", "101 says to what it switches", OFFER, 200, {}, { protocol: "websocket" },
     ["upgrade: websocket", "connection: upgrade"], :raw, false],
    ["9110, 7.8", "and once", OFFER, 200, { "upgrade" => "x" }, { protocol: "websocket" },
     ["upgrade: x", "connection: upgrade"], :raw, false],
    ["9110, 7.8", "after 101 the connection is another protocol's", OFFER, 101,
     { "upgrade" => "x", "connection" => "close" }, {},
     ["upgrade: x", "connection: upgrade"], :raw, false]
  ].freeze

  FIELDS = [
    ["9110, 5.1", "names are sent in lower case", { "X-A" => "1", "ETag" => "2" }, ["x-a: 1", "etag: 2"]],
    ["9110, 5.1", "long ones too", { "X-Longer-Than-Those-That-Are-Remembered" => "1" },
     ["x-longer-than-those-that-are-remembered: 1"]],
    ["9110, 5.3", "several values are several lines in their order", { "b" => %w[1 2], "a" => "3" },
     ["b: 1", "b: 2", "a: 3"]],
    ["9110, 5.3", "no value is no line", { "a" => [] }, []],
    ["9110, 5.5", "values are sent byte for byte", { "a" => "\xFF\u00e4\t \x7F".b }, ["a: \xFF\u00e4\t \x7F".b]],
    ["9110, 5.5", "a value may be empty", { "a" => "" }, ["a: "]],
    ["9110, 5.6.2", "every character of a token is right in a name", { "!#$%&'*+-.^_`|~09az" => "1" },
     ["!#$%&'*+-.^_`|~09az: 1"]],
    ["9110, 6.6.1", "the application's date is the one", { "Date" => "x" }, ["date: x"]],
    ["Rack", "what is for the server is not sent", { "rack.hijack" => proc {}, "rack." => 1, "status" => 200 }, []],
    ["Rack", "values are turned into Strings", { "a" => 1, "b" => [:c, nil], "d" => nil, "e" => true },
     ["a: 1", "b: c", "b: ", "d: ", "e: true"]]
  ].freeze

  REFUSED = [
    ["9110, 5.1", 200, { "" => "x" }, /header name "" has characters/],
    ["9110, 5.1", 200, { "a b" => "x" }, /header name "a b" has characters/],
    ["9110, 5.1", 200, { "a:" => [] }, /header name "a:" has characters/],
    ["9110, 5.1", 200, { "x-longer-than-those-that-are-remembered\r" => "x" }, /has characters/],
    ["9110, 5.1", 200, { "\u00e4" => "x" }, /header name "\u00e4" has characters/],
    ["9110, 5.1", 200, { "a\xFF" => "x" }, /header name "a\\xFF" has characters/],
    ["9110, 5.1", 200, { nil => "x" }, /header name nil must be a String/],
    ["9110, 5.1", 200, { a: 1 }, /header name :a must be a String/],
    ["9110, 5.5", 200, { "X" => "a\nb" }, /header x contains CR, LF or NUL: "a\\nb" \(pass several values/],
    ["9110, 5.5", 200, { "x" => ["a", "b\r"] }, /header x contains CR, LF or NUL: "b\\r"/],
    ["9110, 5.5", 200, { "x" => :"a\x00" }, /header x contains CR, LF or NUL: "a\\u0000"|"a\\x00"/],
    ["9110, 5.5", 200, { "x" => "a".encode("UTF-16LE") }, /header x contains CR, LF or NUL/],
    ["9110, 5.5", 200, { "connection" => "close\r\nx: y" }, /header connection contains CR, LF or NUL/],
    ["9110, 5.5", 200, { "date" => "\r\n" }, /header date contains CR, LF or NUL/],
    ["9110, 5.5", 200, { "upgrade" => "\r\n" }, /header upgrade contains CR, LF or NUL/],
    ["9110, 8.6", 200, { "content-length" => "1", "Content-Length" => "2" }, /two different content-lengths/],
    ["9110, 8.6", 200, { "content-length" => %w[1 2] }, /two different content-lengths/],
    ["9110, 8.6", 200, { "content-length" => "1, 1" }, /content-length must be a number, but is "1, 1"/],
    ["9110, 8.6", 200, { "content-length" => "+1" }, /content-length must be a number, but is "\+1"/],
    ["9110, 8.6", 200, { "content-length" => -1 }, /content-length must be a number, but is -1/],
    ["9110, 8.6", 200, { "content-length" => nil }, /content-length must be a number, but is nil/],
    ["9110, 8.6", 200, { "content-length" => "9223372036854775808" }, /content-length must be a number, but is "92233/],
    ["9112, 6.1", 200, { "transfer-encoding" => "gzip" }, /transfer-encoding is "gzip", but may only be identity/],
    ["9112, 6.1", 200, { "transfer-encoding" => "gzip, chunked" }, /transfer-encoding is "gzip, chunked"/],
    ["9112, 6.1", 200, { "transfer-encoding" => "chunked, chunked" }, /transfer-encoding is "chunked, chunked"/],
    ["9112, 6.1", 200, { "transfer-encoding" => %w[chunked chunked] },
     /transfer-encoding is (\["chunked", )?"chunked"/],
    ["9112, 6.1", 200, { "transfer-encoding" => "" }, /transfer-encoding is ""/],
    ["9110, 15", 0, {}, /status is 0: it must be from 200 to 999/],
    ["9110, 15", 100, {}, /status is 100/], ["9110, 15", 102, {}, /status is 102/],
    ["9110, 15", 199, {}, /status is 199/],
    ["9110, 15", 1_000, {}, /status is 1000/], ["9110, 15", -200, {}, /status is -200/],
    ["9110, 15", 1 << 70, {}, /status is 1180591620717411303424/], ["9110, 15", nil, {}, /status is nil/],
    ["9110, 15", "x", {}, /status is "x"/], ["9110, 15", Object, {}, /status is Object/]
  ].freeze

  def setup
    @writer = H1::ResponseWriter.new
  end

  def head(asked, status, headers, length: nil, keep_alive: true, protocol: nil, until_close: false)
    line, *lines = Array(asked)
    asked = parser.parse(request(*lines, line:))
    @writer.head(asked, status, headers, length, keep_alive, protocol, until_close).tap do |answer|
      answer.bytes = answer.bytes.sub(/^date: .* GMT(?=\r)/, "date: Thu, 01 Jan 1970 00:00:00 GMT")
    end
  end

  # The lines after the status line, but for the date.
  def lines_of(answer)
    assert_operator answer.bytes, :end_with?, "\r\n\r\n"
    status, *lines = answer.bytes.split("\r\n", -1)

    assert_match(%r{\AHTTP/1\.1 #{answer.status} }, status)
    assert_equal ["", ""], lines.pop(2)
    lines - [DATE]
  end

  (FRAMING + CONNECTION).each do |section, rule, *given, lines, framing, keep_alive|
    define_method(:"test_#{section}: #{rule}") do
      asked, status, headers, options = given
      answer = head(asked, status, headers, **options)

      assert_equal lines, lines_of(answer)
      assert_equal [framing, keep_alive], [answer.framing, answer.keep_alive]
      assert_includes answer.bytes, "\r\n#{DATE}\r\n"
    end
  end

  FIELDS.each do |section, rule, headers, expected|
    define_method(:"test_#{section}: #{rule}") do
      2.times { assert_equal expected.map(&:b), lines_of(head(GET, 204, headers)) }
      # Whatever yields names and values counts as headers.
      assert_equal expected.map(&:b), lines_of(head(GET, 204, headers.to_a))
    end
  end

  REFUSED.each_with_index do |(section, status, headers, message), number|
    define_method(:"test_#{section}: #{number} is refused: #{headers.inspect} #{status.inspect}") do
      [headers, headers.to_a].each do |given|
        error = assert_raises(Heddle::HTTP::InvalidResponseError) { head(GET, status, given) }
        assert_match message, error.message.b.force_encoding("UTF-8").scrub
      end
      # Nothing of it is left for the next answer.
      assert_equal [], lines_of(head(GET, 204, {}))
    end
  end

  def test_the_date_is_there_once_and_an_imf_fixdate
    assert_match(/^date: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r$/,
                 @writer.head(parser.parse(request), 200, {}, nil, true, nil, false).bytes)
    assert_equal ["date: x"], head(GET, 204, { "date" => "x" }).bytes.scan(/^date[^\r]*/)
    # No value is no date.
    assert_includes head(GET, 204, { "date" => [] }).bytes, DATE
  end

  def test_every_status_has_the_phrase_of_its_registration_or_none
    registered = { 200 => "OK", 203 => "Non-Authoritative Information", 226 => "IM Used", 308 => "Permanent Redirect",
                   418 => "", 422 => "Unprocessable Content", 511 => "Network Authentication Required", 512 => "",
                   599 => "", 600 => "", 999 => "" }
    registered.each do |status, phrase|
      assert_equal "HTTP/1.1 #{status} #{phrase}", head(GET, status, {}).bytes.lines("\r\n", chomp: true).first
    end
    (200..999).each { |status| assert_match(%r{\AHTTP/1\.1 #{status} [A-Za-z -]*\r\n}, head(GET, status, {}).bytes) }
  end

  def test_status_101_is_invalid_without_an_upgrade_in_the_request
    [OLD, GET, [OLD, *OFFER.drop(1)], OFFER.first(2)].each do |asked|
      [[101, {}], [101, { "upgrade" => "x" }], [200, {}, { protocol: "x" }]].each do |status, headers, options|
        error = assert_raises(Heddle::HTTP::InvalidResponseError) { head(asked, status, headers, **options) }
        assert_match(/status 101 is allowed only if the request has an upgrade header/, error.message)
      end
    end
  end

  def test_status_101_needs_an_upgrade_header
    error = assert_raises(Heddle::HTTP::InvalidResponseError) { head(OFFER, 101, {}) }

    assert_equal "the status 101 needs an upgrade header with the protocol", error.message
  end

  def test_a_protocol_is_checked_like_a_value
    ["a\r\nb: c", "", :websocket, "a\0"].each do |protocol|
      assert_raises(Heddle::HTTP::InvalidResponseError, protocol.inspect) { head(OFFER, 200, {}, protocol:) }
    end
  end
end
