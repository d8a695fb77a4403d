# frozen_string_literal: true

require "test_helper"
require_relative "parsing_helpers"

class ResponseWriterTest < Minitest::Test
  include ParsingHelpers

  DATE = "date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"

  def setup
    @writer = H1::ResponseWriter.new
  end

  def head(status = 200, headers = {}, line: "GET / HTTP/1.1", lines: [], length: nil, keep_alive: true, protocol: nil,
           until_close: false)
    asked = parser.parse(request(*lines, line:))
    @writer.head(asked, status, headers, length, keep_alive, protocol, until_close).tap do |answer|
      answer.bytes = answer.bytes.sub(/^date: .* GMT(?=\r)/, "date: Thu, 01 Jan 1970 00:00:00 GMT")
    end
  end

  def test_an_answer_of_known_length
    answer = head(200, { "content-type" => "text/plain", "set-cookie" => %w[a=b c=d] }, length: 5)

    assert_equal "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n#{DATE}" \
                 "content-length: 5\r\n\r\n", answer.bytes
    assert_equal [:length, 5, true], [answer.framing, answer.length, answer.keep_alive]
    assert_equal Encoding::BINARY, answer.bytes.encoding
  end

  def test_an_answer_of_unknown_length_is_chunked
    answer = head(200, {})

    assert_equal "HTTP/1.1 200 OK\r\n#{DATE}transfer-encoding: chunked\r\n\r\n", answer.bytes
    assert_equal [:chunked, nil, true], [answer.framing, answer.length, answer.keep_alive]
  end

  def test_an_answer_of_unknown_length_to_http_one_zero_ends_with_the_connection
    answer = head(200, {}, line: "GET / HTTP/1.0", lines: ["Connection: keep-alive"])

    assert_equal "HTTP/1.1 200 OK\r\n#{DATE}connection: close\r\n\r\n", answer.bytes
    assert_equal [:close, false], [answer.framing, answer.keep_alive]
  end

  def test_http_one_zero_gets_connection_keep_alive
    answer = head(200, {}, line: "GET / HTTP/1.0", lines: ["Connection: keep-alive"], length: 1)

    assert_includes answer.bytes, "connection: keep-alive\r\n"
    assert answer.keep_alive
    refute head(200, {}, line: "GET / HTTP/1.0", length: 1).keep_alive
  end

  def test_connection_close_is_sent_for_each_reason_to_close
    [head(200, {}, length: 1, keep_alive: false), head(200, { "connection" => "Close" }, length: 1),
     head(200, {}, length: 1, lines: ["Connection: close"])].each do |answer|
      assert_includes answer.bytes, "connection: close\r\n"
      refute answer.keep_alive
    end
  end

  def test_answers_without_content
    { [204, "GET"] => "", [304, "GET"] => "", [204, "HEAD"] => "", [304, "HEAD"] => "",
      [200, "HEAD"] => "content-length: 7\r\n", [404, "HEAD"] => "content-length: 7\r\n",
      [205, "GET"] => "content-length: 0\r\n" }.each do |(status, method), framing|
      answer = head(status, { "content-length" => "7" }, line: "#{method} / HTTP/1.1")

      line, lines = answer.bytes.split("\r\n", 2)

      assert_operator line, :start_with?, "HTTP/1.1 #{status} "
      assert_equal "#{DATE}#{framing}\r\n", lines
      assert_equal [:none, 0, true], [answer.framing, answer.length, answer.keep_alive]
    end
    refute_match(/length|encoding/, head(200, {}, line: "HEAD / HTTP/1.1").bytes)
  end

  def test_the_applications_length_is_used_and_checked
    assert_equal [:length, 12], head(200, { "content-length" => "12" }).to_a.values_at(2, 3)
    assert_equal [:length, 12], head(200, { "Content-Length" => 12 }).to_a.values_at(2, 3)
    ["-1", "", "x", "1, 1", "1\n", nil, %w[1 2]].each do |value|
      assert_raises(Heddle::HTTP::InvalidResponseError, value.inspect) { head(200, { "content-length" => value }) }
    end
    assert_raises(Heddle::HTTP::InvalidResponseError) { head(200, { "content-length" => "1", "Content-Length" => "2" }) }
  end

  def test_the_applications_framing_headers_do_not_reach_the_wire
    answer = head(200, { "transfer-encoding" => "chunked", "content-length" => "5", "keep-alive" => "timeout=5",
                         "connection" => "keep-alive", "rack.hijack" => proc {}, "status" => "200" })

    assert_equal "HTTP/1.1 200 OK\r\n#{DATE}transfer-encoding: chunked\r\n\r\n", answer.bytes
    assert answer.precoded
    assert_raises(Heddle::HTTP::InvalidResponseError) { head(200, { "transfer-encoding" => "gzip, chunked" }) }
    assert_equal :close, head(200, { "transfer-encoding" => "chunked" }, line: "GET / HTTP/1.0").framing
  end

  def test_line_ends_and_nul_in_a_value_are_refused
    ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "\n", "ä\n", "\xFF\r\n"].each do |value|
      [value, [value], ["x", value]].each do |given|
        error = assert_raises(Heddle::HTTP::InvalidResponseError, given.inspect) { head(200, { "x" => given }) }
        assert_match(/header x contains CR, LF or NUL/, error.message)
      end
    end
  end

  def test_malformed_names_are_refused
    ["", "a b", "a:", "a\r\nb", "ä", "a\n", "(a)", :a, nil].each do |name|
      assert_raises(Heddle::HTTP::InvalidResponseError, name.inspect) { head(200, { name => "x" }) }
    end
  end

  def test_names_are_sent_in_lower_case_and_values_byte_for_byte
    assert_includes head(200, { "X-Thing" => "ä\xFF\t" }).bytes, "x-thing: ä\xFF\t\r\n".b
  end

  def test_the_applications_date_is_kept
    assert_equal 1, head(200, { "Date" => "now" }).bytes.scan(/^date:/i).size
  end

  def test_statuses
    assert_operator head(299).bytes, :start_with?, "HTTP/1.1 299 \r\n"
    assert_operator head("404").bytes, :start_with?, "HTTP/1.1 404 Not Found\r\n"
    [0, 99, 100, 102, 103, 199, 1000, nil, "x"].each { |status| assert_raises(Heddle::HTTP::InvalidResponseError) { head(status) } }
  end

  def test_an_upgrade_leaves_the_connection_to_the_stream
    lines = ["Upgrade: websocket, x", "Connection: upgrade"]
    answer = head(200, {}, protocol: "websocket", lines:)

    assert_equal "HTTP/1.1 101 Switching Protocols\r\n#{DATE}upgrade: websocket\r\nconnection: upgrade\r\n\r\n",
                 answer.bytes
    assert_equal [:raw, false], [answer.framing, answer.keep_alive]
    own = head(101, { "upgrade" => "x", "connection" => "Upgrade" }, lines:)

    assert_equal "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n#{DATE}connection: upgrade\r\n\r\n", own.bytes
  end

  def test_a_connect_that_succeeds_has_no_framing
    answer = head(200, {}, line: "CONNECT a:1 HTTP/1.1")

    assert_equal ["HTTP/1.1 200 OK\r\n#{DATE}\r\n", :raw], [answer.bytes, answer.framing]
    assert_equal :chunked, head(404, {}, line: "CONNECT a:1 HTTP/1.1").framing
  end

  def test_early_hints
    assert_equal "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n",
                 @writer.early_hints({ "link" => %w[</a> </b>] })
    assert_raises(Heddle::HTTP::InvalidResponseError) { @writer.early_hints({ "link" => "a\nb" }) }
  end
end
