# frozen_string_literal: true

# test: smoke

require "test_helper"
require "stringio"
require_relative "../../benchmark/support/bench"
require_relative "support/suite_promises"

# The benchmark itself, as far as it runs without the peers' gems.
class SchedulerBenchmarkTest < Minitest::Test
  include SuitePromises

  def setup
    @suite = Bench::Suite.load("scheduler")
  end

  def test_an_unknown_name_is_answered_with_the_known_ones
    error = assert_raises(ArgumentError) { @suite.row("nonsense") }

    assert_match(/no row is called nonsense; there are: fibers, /, error.message)
  end

  def test_threads_and_blocking_run_a_quick_row
    result = run_quick("--only", "thread-queue,queue", "--contestants", "threads,blocking", "--rounds", "2")
    row = Bench::Report.new(result).rows.first
    threads = row.set("threads")

    assert_predicate threads, :complete?, threads.failure
    assert_equal 2, threads.samples.size
    assert_operator threads.median, :>, 0
    assert_equal "would wait for itself", row.set("blocking").exclusion
    assert result[:partial], "it lacks rows, so it is not published"
  end

  def test_a_quick_run_takes_one_contestant_of_heddle_and_one_other_unless_some_are_named
    @suite.define_singleton_method(:probe) { |*, **| { version: "1" } }
    @suite.define_singleton_method(:sample) { |*, **| { value: 1 } }
    own = @suite.contestants.select { |contestant| contestant.role == :heddle }.map(&:key).first(2)
    roles, named = [[], ["--contestants", own.join(",")]].map do |contestants|
      row = Bench::Report.new(run_quick("--only", "thread-join", *contestants)).rows.first
      row.sets.map { |set| row.role(set) == :heddle }
    end

    assert_equal [false, true], roles.sort_by(&:to_s)
    assert_equal [true, true], named
  end

  def test_a_contestant_that_does_not_work_here_is_left_out_with_the_reason
    suite = @suite
    nobody = Class.new(Bench::Contestant) do
      def key = "nobody"

      def label = "nobody"
    end.new
    suite.define_singleton_method(:contestants) { [nobody] }
    result = Bench::Runner.new(suite, Bench::Options.new(["--quick", "--only", "fibers"]), output: StringIO.new).run

    assert_match(/no contestant is called nobody/, result[:contestants].first[:missing])
    assert_empty result[:rows].first[:sets]
  end

  private

  def run_quick(*arguments)
    Bench::Runner.new(@suite, Bench::Options.new(["--quick", *arguments]), output: StringIO.new).run
  end
end
