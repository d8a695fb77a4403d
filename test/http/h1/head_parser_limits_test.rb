# frozen_string_literal: true

require "test_helper"
require_relative "parsing_helpers"

class HeadParserLimitsTest < Minitest::Test
  include ParsingHelpers

  def test_a_request_line_up_to_the_limit_is_read_and_a_longer_one_is_too_long
    fits = "GET /#{"a" * (8_192 - 14)} HTTP/1.1"

    assert_equal 8_192, fits.bytesize
    assert_accepted request(line: fits), request_line_limit: 8_192
    assert_rejected 414, request(line: fits.sub("/", "/a")), request_line_limit: 8_192
    assert_accepted request(line: "GET /#{"a" * 8_200} HTTP/1.1")
  end

  def test_an_endless_request_line_is_refused_when_it_passes_the_limit
    long = "GET /#{"a" * 8_188}".b

    assert_nil parser(request_line_limit: 8_192).parse(long)
    assert_equal 414, parser(request_line_limit: 8_192).parse("#{long}a".b).status
    assert_equal 414, parser(request_line_limit: 8_192).parse("#{long}#{"a" * 90_000}".b).status
  end

  def test_an_endless_method_is_not_implemented_and_endless_rubbish_bad
    assert_equal 501, parser.parse("A" * 20_000).status
    assert_equal 400, parser.parse("A(" * 20_000).status
  end

  def test_a_header_section_up_to_the_limit_is_read_and_a_larger_one_is_too_much
    filler = "A: #{"b" * (1_024 - 16)}"
    bytes = request(filler)
    section = bytes.bytesize - "GET / HTTP/1.1\r\n".bytesize

    assert_equal 1_024, section
    assert_accepted bytes, header_limit: 1_024
    assert_rejected 431, request("#{filler}b"), header_limit: 1_024
    assert_accepted request("A: #{"b" * 32_000}")
    assert_rejected 431, request("A: #{"b" * 33_000}")
  end

  def test_an_endless_header_is_refused_when_it_passes_the_limit
    assert_equal 431, parser(header_limit: 1_024).parse("GET / HTTP/1.1\r\n#{"a" * 1_025}".b).status
    assert_nil parser(header_limit: 1_024).parse("GET / HTTP/1.1\r\n#{"a" * 1_024}".b)
  end

  def test_a_hundred_header_lines_are_read_and_one_more_is_too_much
    lines = (1..99).map { |number| "a#{number}: b" }

    assert_equal 200, assert_accepted(request(*lines)).fields.size
    assert_rejected 431, request(*lines, "b: c")
    assert_rejected 431, request(*lines, "b_c: d"), /100 header lines/
  end

  def test_configured_values_are_checked
    error = assert_raises(ArgumentError) { Limits.new(header_limit: 3) }
    assert_match(/header_limit must be from 1024 to \d+, but is 3/, error.message)
    assert_raises(ArgumentError) { Limits.new(header_limt: 4_096) }
    assert_raises(ArgumentError) { Limits.new(head_timeout: "soon") }
    assert_raises(ArgumentError) { Limits.new(underscore_headers: 1) }
    assert_predicate Limits.new, :frozen?
    assert_equal([8_192, 4_096], Limits.new(request_line_limit: 8_192, header_limit: 4_096)
                                              .then { |one| [one.request_line_limit, one.header_limit] })
  end
end
