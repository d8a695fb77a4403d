# frozen_string_literal: true

require "test_helper"
require_relative "support/finished_run"

class GoalTest < Minitest::Test
  # fibers: 0.5 s, the best peer 0.75 s. server: 30,000, the best peer 40,000, the baseline 90,000.
  FIBERS, SERVER = Bench::Report.new(FinishedRun::RESULT).rows

  def test_a_ratio_to_the_best_peer_or_to_one_contestant
    assert_equal "≥ 1.2 × best: 1.5, met", Bench::Goal.new(at_least: 1.2, than: "best").verdict(FIBERS)
    assert_equal "≥ 0.7 × plain: 0.33, missed", Bench::Goal.new(at_least: 0.7, than: "plain").verdict(SERVER)
  end

  def test_a_figure_or_what_was_measured_beside_it
    assert_equal "≥ 9,500 req/s: 30,000, met", Bench::Goal.new(at_least: 9_500, unit: "req/s").verdict(SERVER)
    assert_equal "≤ 0.3 s: 0.400, missed", Bench::Goal.new(of: :cpu_s, at_most: 0.3, unit: "s").verdict(FIBERS)
  end

  def test_a_goal_may_apply_to_one_contestant
    goal = Bench::Goal.new(at_least: 1, than: "plain", whose: "plain")

    assert_equal "plain ≥ 1 × plain: 1.0, met", goal.verdict(SERVER)
  end

  def test_a_goal_without_a_value_is_neither_met_nor_missed
    assert_equal "≤ 14 µs of CPU: –", Bench::Goal.new(of: :cpu_us, at_most: 14).verdict(FIBERS)
    assert_equal "≥ 2 × nobody: –", Bench::Goal.new(at_least: 2, than: "nobody").verdict(FIBERS)
  end

  def test_a_goal_survives_being_written_and_read
    goal = Bench::Goal.new(of: :cpu_us, at_most: 14)
    again = Bench::Goal.new(**JSON.parse(JSON.generate(goal.to_h), symbolize_names: true))

    assert_equal goal.verdict(FIBERS), again.verdict(FIBERS)
  end
end
