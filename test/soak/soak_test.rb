# frozen_string_literal: true

# test: smoke

require "test_helper"
require "json"
require_relative "run"
require_relative "report"

# How bin/soak judges a run.
class SoakReportTest < Minitest::Test
  HOUR = 3_600.0
  Counts = Data.define(:lost, :errors, :answered)

  # @return [Array<Samples::Sample>] one a minute, of two hours
  def samples(role, pid, slope: 0.0, leaked: 0, jit: 0.0)
    Array.new(121) do |minute|
      noise = (minute % 9) * 2 # until the next collection
      compiled = 5 + (jit * minute / 60)
      memory = 100 + noise + (slope * minute / 60) + compiled
      SoakTest::Samples::Sample.new(time: minute * 60.0, pid:, role:, memory:, own: memory / 2,
                                    parts: { "YJIT" => compiled, "malloc" => 70.0 },
                                    descriptors: 30 + (leaked * minute / 120))
    end
  end

  def report(samples: samples("worker 0", 1), lost: [], errors: [], disturbances: [], unseen: 0)
    disturbances = disturbances.map { |time, kind, pid| SoakTest::Run::Disturbance.new(time:, kind:, pid:) }
    failures = [lost, errors].map do |list|
      list.map { |time, worker| SoakTest::Clients::Failure.new(time:, kind: "page", worker:, error: "500") }
    end
    clients = Counts.new(*failures, { "page" => 7_200 })
    SoakTest::Report.of(SoakTest::Run::Result.new(seconds: 2 * HOUR, samples:, clients:, disturbances:, unseen:,
                                                  missing: { notes: 0, jobs: 0 }, cpu_seconds: 72.0, output: ""), {})
  end

  def test_steady_worker_with_noise_passes
    report = self.report

    assert_empty report.problems
    assert_in_delta 1.0, report.to_h["rate"]
    assert_in_delta 1.0, report.to_h["cpu_percent"]
    assert_match(/worker 0: .*\+0\.0 MB an hour/, report.to_s)
  end

  def test_worker_that_grows_fails
    assert_includes report(samples: samples("worker 0", 1, slope: 1.5)).problems, "worker 0 grows by 1.5 MB an hour"
    assert_empty report(samples: samples("worker 0", 1, slope: 0.5)).problems
  end

  def test_what_yjit_compiles_is_shown_apart_and_is_not_a_growth
    report = report(samples: samples("worker 0", 1, jit: 3.0))

    assert_empty report.problems
    assert_includes report.to_s, "its parts: YJIT 7.8, then 10.4 MB; malloc 70.0, then 70.0 MB"
    leak = report(samples: samples("worker 0", 1, slope: 1.5, jit: 3.0))

    assert_includes leak.problems, "worker 0 grows by 1.5 MB an hour"
  end

  def test_descriptors_that_stay_open_fail
    assert_includes report(samples: samples("worker 0", 1, leaked: 20)).problems.join, "descriptors"
  end

  def test_worker_that_was_replaced_is_left_out_and_without_any_the_run_proves_nothing
    short = samples("worker 1", 2, slope: 100).first(60)

    assert_empty report(samples: samples("worker 0", 1) + short).problems
    assert_includes report(samples: short).problems.first, "no worker"
  end

  def test_lost_response_counts_unless_a_worker_was_just_killed
    kill = [[1_000, :kill, 7]]

    assert_empty report(lost: [[1_001, 7], [1_002, nil]], disturbances: kill).problems
    assert_equal 1, report(lost: [[1_100, nil]], disturbances: kill).problems.size
  end

  def test_status_above_499_counts_unless_the_database_restarts
    outage = [[1_000, :database_stops, nil], [1_002, :database_starts, nil]]

    assert_empty report(errors: [[1_001, 7]], disturbances: outage).problems
    assert_equal 1, report(errors: [[900, 7]], disturbances: outage).problems.size
  end

  def test_message_that_a_stream_has_not_had_counts
    assert_includes report(unseen: 3).problems, "3 events are missing"
  end

  def test_page_has_the_reports_that_are_stored
    page = File.read(File.join(ROOT, "docs/reliability.md"))

    %w[.ci/soak.json .ci/soak_yjit.json].each do |file|
      report = SoakTest::Report.new(JSON.parse(File.read(File.join(ROOT, file))))

      assert_includes page, "<!-- #{file} -->\n```\n#{report}\n```\n"
    end
  end
end
