# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class FigureTest < Minitest::Test
  def test_three_digits_are_meant
    { 0.5834 => "0.583", 12.44 => "12.4", 5.0 => "5.00", 100 => "100", 48_612.3 => "48,600",
      1_680_400 => "1,680,000", 0.00123 => "0.00123" }.each do |value, words|
      assert_equal words, Bench::Figure.format(value)
    end
  end

  def test_no_figure_is_a_dash_and_zero_is_zero
    assert_equal "–", Bench::Figure.format(nil)
    assert_equal "0", Bench::Figure.format(0.0)
  end

  def test_thousands_are_grouped
    assert_equal "100,000", Bench::Figure.grouped(100_000)
    assert_equal "64", Bench::Figure.grouped(64)
  end
end
