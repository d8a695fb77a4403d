# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class StatisticsTest < Minitest::Test
  Statistics = Bench::Statistics

  def test_the_median_of_an_odd_number_of_samples_is_the_middle_one
    assert_in_delta 3.0, Statistics.median([9, 1, 3])
  end

  def test_the_median_of_an_even_number_of_samples_lies_between_the_two_middle_ones
    assert_in_delta 4.0, Statistics.median([9, 1, 3, 5])
  end

  def test_there_is_no_median_without_samples
    assert_nil Statistics.median([])
  end

  def test_half_the_time_is_twice_as_good
    assert_in_delta 2.0, Statistics.advantage(1.5, 3.0, better: :lower)
  end

  def test_twice_the_rate_is_twice_as_good
    assert_in_delta 2.0, Statistics.advantage(3_000, 1_500, better: :higher)
  end

  def test_no_ratio_is_given_for_missing_or_zero_values
    assert_nil Statistics.advantage(nil, 3.0, better: :lower)
    assert_nil Statistics.advantage(0, 3.0, better: :lower)
    assert_nil Statistics.advantage(3.0, 0, better: :higher)
  end
end
