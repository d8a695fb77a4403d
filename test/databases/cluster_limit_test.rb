# frozen_string_literal: true

# test: one version

require "open3"
require_relative "support/database_programs"
require "server/cluster/cluster_case"

# `max_total` of Active Record's pools: both workers together have no more connections.
class ClusterLimitTest < Minitest::Test
  include ClusterCase
  include DatabasePrograms

  def test_all_workers_together_run_no_more_queries_than_the_limit
    serve_with_limit(4)
    answers = requests(%w[/query /lease] * 10).map(&:value)

    assert_equal ["200"], answers.map(&:code).uniq, served.output
    assert_operator answers.map { |answer| Integer(answer.body) }.max, :<=, 4
    assert_equal 2, answers.map { |answer| answer["x-worker"] }.uniq.size
    wait_until { connections <= 4 }
  end

  def test_workers_alternate_with_fewer_connections_than_workers
    serve_with_limit(1)
    answers = requests(["/query"] * 20).map(&:value)

    assert_equal ["1"], answers.map(&:body).uniq, served.output
    wait_until { connections == 1 }
  end

  def test_a_reload_under_load_loses_no_request_and_keeps_the_limit
    serve_with_limit(2)
    loads = %w[/query /lease].map { |path| load(path:, kept: 1, fresh: 1, pause: 0.1) }
    loads.each { |load| load.wait_for(4) }
    former = loads.flat_map { |load| load.by_worker.keys }

    assert_match(/\Areloaded/, reload)
    loads.each do |load|
      load.wait_for(4)

      assert_empty load.stop.failures, served.output
      refute_empty load.by_worker.keys - former
    end
    assert_match(/pool 5, max_total 2, workers 2 → at most 2 connections, 2 during a reload;/, served.output)
  end

  def test_the_connections_of_a_worker_that_was_killed_come_back
    serve_with_limit(1)
    holding = ask("/hold")
    wait_until { connections == 1 }
    pid = Integer(File.read(path("holder"))) # any worker may have the connection
    signal("KILL", pid)
    wait_until { !alive?(pid) }

    # If the killed worker's query had begun, the database continues it.
    assert_match(/\A[12]\z/, requests(["/query"]).first.value.body, served.output)
  ensure
    holding&.close
    PrivatePostgresql.shared.cut_connections("limited")
  end

  private

  def serve_with_limit(total)
    need_gem "activerecord"
    write("config.ru", File.read(File.join(FOLDER, "limit.ru")))
    serve("--control", "unix:control.sock",
          environment: { "RACK_ENV" => "production", "DATABASE_URL" => address("pg"), "MAX_TOTAL" => total.to_s })
  end

  # @return [String] what the command has printed
  def reload
    Open3.capture2e(*ServedProcess::HEDDLE, "reload", "--control", "unix:control.sock", chdir: @folder).first
  end

  def requests(paths) = paths.map { |path| Thread.new { served.get(path, patience: ClusterCase::PATIENCE) } }

  # @return [Integer] that the database counts
  def connections
    pg = PrivatePostgresql.shared.connect
    Integer(pg.exec("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'limited'").getvalue(0, 0))
  ensure
    pg&.close
  end
end
