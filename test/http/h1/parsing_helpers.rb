# frozen_string_literal: true

require "heddle/http"
require_relative "support/head_parsers"

# Feeds a parser in pieces, as a network does.
module ParsingHelpers
  include Heddle::HTTP

  def parser(**limits) = H1::HeadParser.new(Limits.new(**limits))

  # The result of parsing the bytes whole, after checking that every other way to cut them gives the same.
  def parse(bytes, **limits)
    bytes = bytes.b
    whole = parser(**limits).parse(bytes)

    assert_same_by_bytes(whole, bytes, limits)
    assert_same_by_halves(whole, bytes, limits) if bytes.bytesize < 2_000
    whole
  end

  # A request with the given header lines and a Host.
  def request(*lines, line: "GET / HTTP/1.1", host: "Host: a\r\n")
    "#{line}\r\n#{host}#{lines.map { |one| "#{one}\r\n" }.join}\r\n"
  end

  def assert_rejected(status, bytes, word = nil, **limits)
    result = parse(bytes, **limits)

    assert_kind_of Heddle::HTTP::Rejection, result, "accepted: #{bytes.inspect}"
    assert_equal status, result.status, "#{bytes.inspect}: #{result.reason}"
    assert_match word, result.reason if word
    result
  end

  def assert_accepted(bytes, **limits)
    result = parse(bytes, **limits)

    assert_kind_of H1::RequestHead, result, "#{bytes.inspect}: #{result.inspect}"
    result
  end

  private

  def assert_same_by_bytes(whole, bytes, limits)
    one = parser(**limits)
    buffer = "".b
    seen = 0
    result = nil
    bytes.each_char do |byte|
      buffer << byte
      break if (result = one.parse(buffer, 0, seen))

      seen = buffer.bytesize
    end

    assert_same_result(whole, result, bytes)
  end

  def assert_same_by_halves(whole, bytes, limits)
    (1...bytes.bytesize).each do |cut|
      one = parser(**limits)
      first = bytes.byteslice(0, cut)
      result = one.parse(first, 0, 0) || one.parse(bytes, 0, cut)

      assert_same_result(whole, result, bytes)
    end
  end

  def assert_same_result(whole, result, bytes)
    assert_equal whole.class, result.class, "cut differently: #{bytes.inspect} gives #{result.inspect}"
    if whole.is_a?(Heddle::HTTP::Rejection)
      assert_equal whole.status, result.status, bytes.inspect
    elsif whole
      assert_equal [whole.fields, whole.ending, whole.target], [result.fields, result.ending, result.target]
    end
  end
end
