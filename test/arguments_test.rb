# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle/net/connector"
require "heddle/http/client"

# What a program passes is checked by one rule, and the messages say what is allowed.
class ArgumentsTest < Minitest::Test
  GOOD = [1, 0.5, Rational(1, 3)].freeze
  BAD = [0, -1, 0.0, Float::INFINITY, Float::NAN, "5", :soon].freeze

  def test_finite_numbers_above_zero_are_returned
    GOOD.each do |good|
      assert_same good, Heddle::Arguments.interval(good)
      assert_same good, Heddle::Arguments.limit("timeout:", good)
    end
    assert_nil Heddle::Arguments.limit("timeout:", nil)
  end

  def test_invalid_intervals_are_rejected
    [nil, *BAD].each do |bad|
      error = assert_raises(ArgumentError) { Heddle::Arguments.interval(bad) }

      assert_equal "the interval is #{bad.inspect}, but must be a positive number of seconds", error.message
    end
  end

  def test_invalid_time_limits_are_rejected
    BAD.each do |bad|
      error = assert_raises(ArgumentError) { Heddle::Arguments.limit("timeout: read", bad) }

      assert_equal "timeout: read is #{bad.inspect}, but must be a positive number of seconds, or nil", error.message
    end
  end

  def test_time_limits_of_waits_may_be_over_or_without_end
    [nil, 0, -1, 0.5, Rational(1, 3), Float::INFINITY].each do |good|
      good.nil? ? assert_nil(Heddle::Arguments.wait("x", good)) : assert_same(good, Heddle::Arguments.wait("x", good))
    end
    [Float::NAN, "5", :soon, [1]].each do |bad|
      error = assert_raises(ArgumentError) { Heddle::Arguments.wait("timeout:", bad) }

      assert_equal "timeout: is #{bad.inspect}, but must be a number of seconds, or nil", error.message
    end
  end

  def test_the_message_names_the_time_limit
    { timeout: "timeout: is 0, ", tls_timeout: "tls_timeout: is 0, " }.each do |name, beginning|
      error = assert_raises(ArgumentError) { Heddle::Net::Connector.new("localhost:1", name => 0) }

      assert_operator error.message, :start_with?, beginning
    end
    error = assert_raises(ArgumentError) { Heddle::HTTP::Client.new(timeout: { connect: "5" }) }

    assert_operator error.message, :start_with?, "timeout: connect is \"5\", "
  end
end
