# frozen_string_literal: true

# test: each version

require "test_helper"
require_relative "served_example"

# examples/ractor, over real sockets.
class RactorExampleTest < Minitest::Test
  def test_primes_are_counted_in_a_ractor
    served = ServedExample.new("ractor")

    assert_match(/\A1229 primes up to 10000, counted by ractor [12]\n\z/, served.get("/primes/10000").body)
    assert_equal ["404", "Try /primes/200000\n"], served.get("/").then { |answer| [answer.code, answer.body] }
  ensure
    assert_predicate served.stop, :success?
  end
end
