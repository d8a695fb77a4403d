# frozen_string_literal: true

require "test_helper"
require_relative "parsing_helpers"

class HeadParserFramingTest < Minitest::Test
  include ParsingHelpers

  def test_a_content_length_of_digits_is_read
    assert_equal 5, assert_accepted(request("Content-Length: 5")).content_length
    assert_equal 5, assert_accepted(request("Content-Length: 0005")).content_length
    assert_equal 5, assert_accepted(request("Content-Length: 5", "content-length: 5")).content_length
    head = assert_accepted(request("Content-Length: 0"))
    assert_equal [0, false], [head.content_length, head.body?]
  end

  def test_a_content_length_that_is_not_digits_or_repeated_with_another_value_is_a_bad_request
    ["", "-1", "+1", "0x5", "5 5", "5,5", "5, 6", "1e3", "5;", "five", "\xB2", "1_000", "5."].each do |value|
      assert_rejected 400, request("Content-Length: #{value}"), /Content-Length/
    end
    assert_rejected 400, request("Content-Length: 5", "Content-Length: 6"), /two different/
  end

  def test_a_body_above_the_limit_is_too_large
    assert_rejected 413, request("Content-Length: 11"), body_limit: 10
    assert_accepted request("Content-Length: 10"), body_limit: 10
    assert_rejected 413, request("Content-Length: #{"9" * 400}")
  end

  def test_chunked_as_the_only_coding_is_accepted
    ["chunked", "Chunked", "CHUNKED", "chunked ", ", chunked,"].each do |value|
      assert_predicate assert_accepted(request("Transfer-Encoding: #{value}")), :chunked?
    end
  end

  def test_chunked_that_is_not_last_or_malformed_is_a_bad_request
    ["", ",", "chunked, chunked", "chunked, gzip", "chunked;a=b", "\"chunked\"", "chunked chunked",
     "chu\xFFnked"].each do |value|
      assert_rejected 400, request("Transfer-Encoding: #{value}"), /coding/
    end
    assert_rejected 400, request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")
    assert_rejected 400, request("Transfer-Encoding: chunked", "Transfer-Encoding: gzip")
    assert_rejected 400, request("Transfer-Encoding: \vchunked")
  end

  def test_a_coding_that_is_not_known_is_not_implemented
    ["gzip", "gzip, chunked", "identity", "xchunked", "chunked1", "br, gzip"].each do |value|
      assert_rejected 501, request("Transfer-Encoding: #{value}")
    end
  end

  def test_transfer_encoding_with_a_length_or_on_http_one_zero_is_a_bad_request
    assert_rejected 400, request("Transfer-Encoding: chunked", "Content-Length: 5")
    assert_rejected 400, request("Content-Length: 5", "Transfer-Encoding: chunked")
    assert_rejected 400, request("Content-Length: 0", "Transfer-Encoding: chunked")
    assert_rejected 400, request("Transfer-Encoding: chunked", line: "POST / HTTP/1.0")
  end

  def test_whether_the_connection_continues
    { [1, nil] => true, [1, "close"] => false, [1, "Close"] => false, [1, "keep-alive"] => true,
      [1, "x, CLOSE ,y"] => false, [1, "keep-alive, close"] => false, [1, "xclose"] => true, [0, nil] => false,
      [0, "keep-alive"] => true, [0, "Keep-Alive, x"] => true, [0, "close, keep-alive"] => false, [0, "x"] => false,
      [1, ""] => true, [1, ",close,"] => false }.each do |(minor, value), expected|
      lines = value ? ["Connection: #{value}"] : []
      head = assert_accepted(request(*lines, line: "GET / HTTP/1.#{minor}"))
      assert_equal expected, head.keep_alive?, [minor, value].inspect
    end
    refute_predicate assert_accepted(request("Connection: keep-alive", "Connection: close")), :keep_alive?
  end

  def test_expectations
    ["100-continue", "100-Continue", "100-CONTINUE ", "100-continue, 100-continue"].each do |value|
      assert_predicate assert_accepted(request("Expect: #{value}", "Content-Length: 1")), :expects_continue?
    end
    ["100-continue, x", "200-ok", "x"].each { |value| assert_rejected 417, request("Expect: #{value}") }
    refute_predicate assert_accepted(request("Expect: 100-continue", line: "POST / HTTP/1.0")), :expects_continue?
  end

  def test_an_upgrade_counts_only_when_the_connection_header_names_it
    assert_equal ["websocket"],
                 assert_accepted(request("Upgrade: websocket", "Connection: keep-alive, Upgrade")).upgrade
    assert_equal %w[a/1 b], assert_accepted(request("Upgrade: a/1, b", "Connection: upgrade")).upgrade
    assert_nil assert_accepted(request("Upgrade: websocket")).upgrade
    assert_nil assert_accepted(request("Connection: upgrade")).upgrade
    assert_nil assert_accepted(request("Upgrade: a", "Connection: upgrade", line: "GET / HTTP/1.0")).upgrade
  end
end
