# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"
require_relative "../support/suite_promises"

class StallsBenchmarkSuiteTest < Minitest::Test
  include SuitePromises

  def setup
    @suite = Bench::Suite.load("stalls")
  end

  def test_every_row_has_a_goal_a_number_of_processes_and_named_figures
    @suite.rows.each do |row|
      refute_empty row.goals, row.key
      assert_includes [1, 2], row.processes, row.key
      assert_empty row.details - Bench::Report::DETAIL_NAMES.keys, row.key
    end
  end

  def test_a_contestant_serves_with_the_processes_of_the_row
    commands = @suite.contestants.reject { |one| one.key.start_with?("itsi", "puma", "falcon", "iodine") }.map do |one|
      one.with_processes(7).command(1, "/", []).join(" ")
    end

    assert_equal 2, commands.size
    commands.each { |command| assert_includes command, "--workers 7" }
    assert_equal(1, commands.count { |command| command.include?("--protect off") })
  end
end
