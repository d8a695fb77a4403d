# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class InterleavingTest < Minitest::Test
  def test_every_round_has_one_sample_of_every_contestant
    order = []
    Bench::Interleaving.each(%w[a b c], 2) { |round, contestant| order << [round, contestant] }

    assert_equal [[1, "a"], [1, "b"], [1, "c"], [2, "a"], [2, "b"], [2, "c"]], order
  end

  def test_a_contestant_that_fails_runs_no_further_rounds
    order = []
    contestants = %w[a b c]
    Bench::Interleaving.each(contestants, 3) do |_, contestant|
      order << contestant
      :drop if contestant == "b"
    end

    assert_equal %w[a b c a c a c], order
    assert_equal %w[a b c], contestants
  end
end
