# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class SampleSetTest < Minitest::Test
  def test_median_and_spread_are_given_for_the_value_and_for_side_measurements
    set = taken([{ value: 3, cpu_s: 0.3 }, { value: 1, cpu_s: 0.1 }, { value: 2, cpu_s: nil }])

    assert_in_delta 2, set.median
    assert_equal 1, set.min
    assert_equal 3, set.max
    assert_in_delta 0.2, set.median(:cpu_s)
  end

  def test_a_failed_round_makes_the_set_failed
    set = taken([{ value: 3 }])

    assert_predicate set, :complete?
    set.fail("ended without a result")

    refute_predicate set, :complete?
  end

  def test_without_samples_it_is_not_complete
    refute_predicate taken([]), :complete?
  end

  def test_a_note_is_said_once
    assert_equal %w[low high], taken([{ note: "low" }, { note: "low" }, { note: "high" }, {}]).notes
  end

  private

  def taken(samples) = Bench::SampleSet.new("x", samples:)
end
