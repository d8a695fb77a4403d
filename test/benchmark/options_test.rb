# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class OptionsTest < Minitest::Test
  def test_five_rounds_of_everything_unless_said
    options = Bench::Options.new([])

    assert_equal 5, options.rounds
    assert_nil options.only
    assert_predicate options, :yjit?
    refute_predicate options, :raise_map_count?
  end

  def test_quick_is_one_round_unless_said
    assert_equal 1, Bench::Options.new(["--quick"]).rounds
    assert_equal 3, Bench::Options.new(["--quick", "--rounds", "3"]).rounds
  end

  def test_rows_and_contestants_are_named_by_comma
    options = Bench::Options.new(["--only", "fibers,pipe", "--contestants", "threads"])

    assert_equal %w[fibers pipe], options.only
    assert_equal %w[threads], options.contestants
  end

  def test_no_rounds_and_unknown_options_are_refused
    assert_raises(OptionParser::InvalidArgument) { Bench::Options.new(["--rounds", "0"]) }
    assert_raises(OptionParser::InvalidOption) { Bench::Options.new(["--slowly"]) }
  end
end
