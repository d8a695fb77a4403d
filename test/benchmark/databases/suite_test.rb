# frozen_string_literal: true

# test: long
# test: nightly

require "test_helper"
require "stringio"
require_relative "../../../benchmark/support/bench"
require_relative "../support/suite_promises"

class DatabasesBenchmarkSuiteTest < Minitest::Test
  include SuitePromises

  # Answers like a pool that opens one connection after the other.
  class SlowPool
    attr_reader :asked

    # @param open [Array<Integer>] connections after each warm-up
    def initialize(*open)
      @open = open
      @asked = []
    end

    def blocking? = false

    def each(items, workers:, &)
      items.first(workers).each(&)
      []
    end

    def query(sql)
      return @open.shift if sql.include?("count(*)")

      @asked << sql
      1
    end
  end

  def setup
    @suite = Bench::Suite.load("databases")
  end

  def test_the_mix_has_neverblocks_eighteen_cells_and_each_wants_what_was_saved_there
    cells = @suite.rows.select { |row| row.key.match?(/\Amix-/) }

    assert_equal 18, cells.size
    goals = %w[mix-50-500 mix-10-50 disk-mix-10-100].map { |key| @suite.row(key).goals.first.to_h }

    assert_equal [1.66, 1.37, 2.04].map { |ratio| { of: :value, at_least: ratio, than: "blocking" } }, goals
  end

  def test_the_details_of_each_row_have_names
    @suite.rows.each do |row|
      assert_empty row.details - Bench::Report::DETAIL_NAMES.keys, row.key
      assert_empty row.shown - row.details, row.key
    end
  end

  def test_a_contestant_is_a_server_that_runs_requests_as_it_runs_queries
    servers = %w[blocking threads-ar async-ar heddle-sequel].map do |key|
      @suite.contestant(key).served({ folder: "/nowhere" }, connections: 12).server
    end

    assert_equal %w[puma puma falcon heddle], servers.map(&:key)
    assert_equal ["1 threads", "12 threads"], servers.first(2).map(&:settings)
  end

  def test_every_contestant_of_postgresql_takes_part_over_http
    left_out = @suite.contestants.select { |one| @suite.row("web").excludes(one) }

    assert_equal [:mariadb], left_out.map(&:database).uniq
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

  def test_quick_rows_run_on_a_real_database
    skip "PostgreSQL is not installed" unless PrivatePostgresql.programs

    mix, restart, abandoned = run_rows("mix-10-20,restart,abandoned", "blocking,heddle-pg")

    assert_complete mix, "blocking", "heddle-pg"
    assert_complete restart, "heddle-pg"
    assert_complete abandoned, "heddle-pg"
    assert_operator abandoned.set("heddle-pg").median(:gone_ms), :<, 2_000, "else nothing was cancelled"
  end

  def test_quick_rows_run_over_http
    skip "PostgreSQL is not installed" unless PrivatePostgresql.programs
    skip "wrk is not installed" unless Bench::Wrk.installed?

    web, crowd, abandoned = run_rows("web,web-crowd,web-abandoned", "heddle-ar")

    [web, crowd, abandoned].each { |row| assert_complete row, "heddle-ar" }
    assert_equal 0, crowd.set("heddle-ar").median(:errors)
    assert_operator abandoned.set("heddle-ar").median(:gone_ms), :<, 2_000, "else nothing was cancelled"
  end

  def test_a_pool_that_opens_one_connection_after_the_other_is_warmed_up_until_all_are_open
    pool = SlowPool.new(2, 4)
    @suite.row("delay-0").send(:warm_up, pool, 3)

    assert_equal({ "SELECT 1 FROM pg_sleep(0.2)" => 3, "SELECT 1 FROM pg_sleep(0.4)" => 3 }, pool.asked.tally)
    error = assert_raises(RuntimeError) { @suite.row("delay-0").send(:warm_up, SlowPool.new(*[3] * 9), 3) }
    assert_equal "2 connections are open, not 3", error.message
  end

  private

  def run_rows(rows, contestants)
    options = Bench::Options.new(["--quick", "--rounds", "1", "--only", rows, "--contestants", contestants])
    Bench::Report.new(Bench::Runner.new(@suite, options, output: StringIO.new).run).rows
  end

  def assert_complete(row, *keys)
    keys.each { |key| assert_predicate row.set(key), :complete?, row.set(key).failure }
  end
end
