# frozen_string_literal: true

# test: smoke

require "test_helper"
require_relative "support/check"

# How the findings of a check under both servers are judged.
class SwitchCheckTest < Minitest::Test
  def check(known: nil, &) = Switch::Check.new(name: "a", at: nil, smoke: false, known:, block: proc(&))

  def seen(value) = Switch::Observation.new(value:, error: nil)

  def milliseconds(number) = seen(Switch::Figure.new(number:, unit: "ms", allowed: 2.0, slack: 10))

  def verdict(one, puma, heddle) = one.verdict(puma, heddle).then { |found| [found.text, found.passed] }

  def test_equal_values_pass_and_others_fail
    one = check { 1 }

    assert_equal ["same", true], verdict(one, seen(["200"]), seen(["200"]))
    assert_equal ["differs", false], verdict(one, seen(["200"]), seen(["500"]))
  end

  def test_a_known_difference_passes_and_an_error_does_not
    one = check(known: "a reason") { 1 }
    failed = Switch::Observation.new(value: nil, error: "RuntimeError: no")

    assert_equal ["known: a reason", true], verdict(one, seen(1), seen(2))
    assert_equal ["failed", false], verdict(one, failed, failed), "the same error under both is no proof"
  end

  def test_a_figure_may_be_larger_by_its_factor_and_slack
    one = check { 1 }

    assert_equal ["no worse", true], verdict(one, milliseconds(50), milliseconds(110))
    assert_equal ["worse", false], verdict(one, milliseconds(50), milliseconds(111))
  end

  def test_an_exception_of_the_block_is_what_was_seen
    application = Object.new

    assert_equal 42, check { 42 }.observe(application).value
    assert_match(/\ARuntimeError: not there \(/, check { expect(false, "not there") }.observe(application).error)
  end
end
