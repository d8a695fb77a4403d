# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "support/finished_run"

class StoredResultTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "results/scheduler.json")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def stored = Bench::StoredResult.new(@path)

  def add(command: "bin/bench scheduler", rows: FinishedRun::RESULT[:rows], **change)
    stored.add(FinishedRun::RESULT.merge(rows:, **change), command:, commit: "01234567").write
  end

  def test_a_run_is_kept_with_its_circumstances
    add(environment: { "Ruby" => "3.4.11", "date" => "2026-11-27" })
    run = stored.runs.first

    assert_equal ["bin/bench scheduler", "01234567", "2026-11-27", 3, { Ruby: "3.4.11" }],
                 run.values_at(:command, :commit, :date, :rounds, :environment)
    assert_equal({ key: "quick", label: "quick one", role: "peer", version: "2" }, run[:contestants][1])
    refute_includes run[:contestants].map { |one| one[:key] }, "gone"
  end

  def test_a_contestant_is_kept_with_its_median_and_interval_or_its_failure
    add
    _, row = stored.find("fibers")

    assert_equal [{ contestant: "ours", rounds: 3, median: 0.5, least: 0.4, greatest: 0.6, cpu_s: 0.4 },
                  { contestant: "quick", rounds: 1, median: 0.75, least: 0.75, greatest: 0.75 },
                  { contestant: "slow", failure: "no answer within 30 s" }], row[:sets]
    assert_nil stored.find("nothing")
  end

  def test_a_later_run_replaces_the_rows_that_it_has
    add
    add(command: "bin/bench scheduler --only server", rows: FinishedRun::RESULT[:rows].last(1))

    assert_equal [["bin/bench scheduler", %w[fibers]], ["bin/bench scheduler --only server", %w[server]]],
                 stored.runs.map { |run| [run[:command], run[:rows].map { |row| row[:key] }] }
    add

    assert_equal 1, stored.runs.size
  end

  def test_a_smoke_run_is_refused
    assert_raises(Bench::StoredResult::Refused) { add(quick: true) }
    refute_path_exists @path
  end

  def test_the_commit_is_one_of_the_product
    assert_match(/\A\h{8}\+?\z|\Aunknown\z/, Bench::StoredResult.commit)
  end
end
