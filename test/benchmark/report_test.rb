# frozen_string_literal: true

require "test_helper"
require_relative "support/finished_run"

class ReportTest < Minitest::Test
  def test_heddle_is_compared_with_the_best_peer_that_finished
    fibers, server = report.rows

    assert_equal "quick", fibers.best_peer.contestant
    assert_in_delta 1.5, fibers.advantage(fibers.best_heddle)
    assert_equal "slow", server.best_peer.contestant
    assert_in_delta 0.75, server.advantage(server.best_heddle)
  end

  def test_the_table_has_a_line_a_row_and_a_column_a_contestant_that_was_run
    lines = report.to_text.lines(chomp: true)
    heading = lines.find { |line| line.include?("Heddle / best peer") }

    assert_equal ["Heddle epoll", "quick one", "slow one", "blocking", "Heddle / best peer"],
                 heading.strip.split(/ {2,}/)
    assert_includes lines.map { |line| line.split(/ {2,}/) },
                    ["fibers, s", "0.500", "0.750", "failed", "–", "1.50 × quick one"]
  end

  def test_the_report_shows_spread_failures_and_rows_that_were_not_run
    [report.to_text, report.to_markdown].each do |output|
      assert_includes output, "0.400–0.600"
      assert_includes output, "no answer within 30 s"
      assert_includes output, "gone: not run: not for this Ruby"
      assert_includes output, "rounds: 3"
    end
  end

  def test_a_smoke_run_says_that_its_figures_mean_nothing
    assert_match(/mean nothing/, Bench::Report.new(FinishedRun::RESULT.merge(quick: true)).to_text)
    refute_match(/mean nothing/, report.to_text)
  end

  def test_a_written_report_is_read_back
    again = JSON.parse(JSON.generate(FinishedRun::RESULT), symbolize_names: true)

    assert_equal report.to_text, Bench::Report.new(again).to_text
  end

  def test_a_reference_has_a_column_of_ratios_and_goals_have_one_of_verdicts
    lines = with_goals.to_text.lines(chomp: true).map { |line| line.split(/ {2,}/) }

    assert(lines.any? { |cells| cells.last(3) == ["Heddle / best peer", "Heddle / plain", "goals"] })
    assert_equal ["0.33 ×", "≥ 2 × best: 0.75, missed"], lines.assoc("server, req/s").last(2)
    assert_includes lines, ["· CPU s", "0.300", "–", "–", "–", "≤ 1 s: 0.300, met"]
  end

  def test_requests_that_failed_mark_the_figure
    text = with_goals.to_text

    assert_match(/40,000†/, text)
    assert_match(/†: with errors/, with_goals.to_markdown)
    refute_match(/†/, report.to_text)
  end

  def test_another_figure_takes_the_place_of_the_value
    row, *others = report.of(:cpu_s, unit: "CPU s", title: "CPU").rows

    assert_empty others
    assert_equal ["CPU s", :lower], [row.unit, row.better]
    assert_in_delta 0.4, row.set("ours").median
  end

  private

  def with_goals
    fibers, server = FinishedRun::RESULT[:rows]
    sets = server[:sets].map { |set| set.merge(samples: set[:samples].map { |sample| extended(set, sample) }) }
    goals = [{ at_least: 2, than: "best" }, { of: :cpu_s, at_most: 1, unit: "s" }]
    rows = [fibers, server.merge(sets:, goals:, details: ["cpu_s"], shown: ["cpu_s"])]
    Bench::Report.new(FinishedRun::RESULT.merge(rows:, reference: "plain"))
  end

  def extended(set, sample)
    { "ours" => sample.merge(cpu_s: 0.3, errors: 0), "slow" => sample.merge(errors: 3) }.fetch(set[:contestant], sample)
  end

  def report = Bench::Report.new(FinishedRun::RESULT)
end
