# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"
require_relative "../support/suite_promises"

class ComputeBenchmarkSuiteTest < Minitest::Test
  include SuitePromises
  include GoalPromises

  def setup
    @suite = Bench::Suite.load("compute")
  end

  def test_all_serve_with_two_processes
    commands = @suite.contestants.reject { |one| one.key == "falcon" }.map do |one|
      one.command(1, "/", []).join(" ")
    rescue Gem::GemNotFoundException
      skip "needs the gem puma: bin/setup"
    end

    assert_empty commands.grep_v(/(?:--workers|-w) 2( |$)/)
  end

  def test_rows_at_a_share_of_capacity_take_their_rate_from_the_reference
    rows = @suite.rows.select { |row| row.respond_to?(:share) && row.share }

    assert_equal [0.6, 0.8, 0.95], rows.map(&:share)
    assert_includes @suite.contestants.map(&:key), @suite.reference
  end
end
