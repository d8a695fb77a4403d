# frozen_string_literal: true

require "test_helper"
require "stringio"
require_relative "../../../benchmark/support/bench"
require_relative "../support/suite_promises"

class DatabasesBenchmarkSuiteTest < Minitest::Test
  include SuitePromises

  def setup
    @suite = Bench::Suite.load("databases")
  end

  def test_the_mix_has_neverblocks_eighteen_cells_and_each_wants_what_was_saved_there
    cells = @suite.rows.select { |row| row.key.match?(/\Amix-/) }

    assert_equal 18, cells.size
    goal = @suite.row("mix-50-500").goals.first.to_h

    assert_equal({ of: :value, at_least: 1.66, than: "blocking" }, goal)
  end

  def test_the_details_of_each_row_have_names
    @suite.rows.each { |row| assert_empty row.details - Bench::Report::DETAIL_NAMES.keys, row.key }
  end

  def test_a_contestant_takes_part_in_the_rows_of_its_database
    trilogy = @suite.contestant("heddle-trilogy")

    assert_equal "another database", @suite.row("abandoned").excludes(trilogy)
    assert_nil @suite.row("mariadb-abandoned").excludes(trilogy)
  end

  def test_threads_run_every_item_once
    contestant = @suite.contestant("threads-sequel")
    seen = Thread::Queue.new
    errors = contestant.each((1..50).to_a, workers: 4) { |item| item == 7 ? raise("seven") : seen << item }

    assert_equal ["seven"], errors.map(&:message)
    assert_equal (1..50).to_a - [7], Array.new(seen.size) { seen.pop }.sort
  end

  def test_a_quick_row_runs_on_a_real_database
    skip "PostgreSQL is not installed" unless PrivatePostgresql.programs

    result = Bench::Runner.new(@suite, Bench::Options.new(%w[--quick --only mix-10-20,restart --contestants
                                                             blocking,heddle-pg]), output: StringIO.new).run
    mix, restart = Bench::Report.new(result).rows

    assert_predicate mix.set("blocking"), :complete?, mix.set("blocking").failure
    assert_predicate mix.set("heddle-pg"), :complete?, mix.set("heddle-pg").failure
    assert_predicate restart.set("heddle-pg"), :complete?, restart.set("heddle-pg").failure
  end
end
