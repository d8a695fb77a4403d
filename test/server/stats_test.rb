# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "server_helpers"
require_relative "cluster/cluster_case"

# Heddle.stats, which applications and collectors call in a worker, as Puma.stats.
class StatsTest < Minitest::Test
  include ServerHelpers

  KEYS = %i[mode workers running queued connections requests capacity per_worker].freeze
  WORKER_KEYS = %i[worker pid running queued capacity connections requests accepting reserve lag].freeze

  def test_outside_of_a_server_there_are_no_workers
    stats = Heddle.stats

    assert_equal KEYS.sort, stats.keys.sort
    assert_equal [nil, 0, 0, 0, 0, 0, 0, []], stats.values_at(*KEYS)
  end

  def test_requests_that_run_and_wait_are_counted_in_one_process
    app, entered, go = waiting_application
    start(app, max_requests: 2, mode: :fiber, threads: 1)
    clients = Array.new(3) { Thread.new { get("/waits") } }
    2.times { entered.pop }
    until_statistics { |found| found[:waiting] == 1 }
    stats = Heddle.stats
    worker = stats[:per_worker].first

    assert_equal [:fiber, 1, 2, 1, 3, 0], stats.values_at(:mode, :workers, :running, :queued, :connections, :capacity)
    assert_equal WORKER_KEYS.sort, worker.keys.sort
    assert_equal [0, Process.pid, true, false], worker.values_at(:worker, :pid, :accepting, :reserve)
  ensure
    4.times { go&.push(true) }
    clients&.each(&:join)
    stop
    assert_equal 0, Heddle.stats[:workers]
  end
end

# The same from any worker of several, about all of them.
class ClusterStatsTest < Minitest::Test
  include ClusterCase

  APP = <<~RUBY
    run do |env|
      if env["PATH_INFO"] == "/hold"
        File.write("held", "")
        sleep 0.01 until File.exist?("go")
      end
      [200, { "x-worker" => $$.to_s }, [JSON.generate(Heddle.stats)]]
    end
  RUBY

  def stats = JSON.parse(served.get("/").body, symbolize_names: true)

  def test_each_worker_knows_the_load_of_all
    write("config.ru", "require \"json\"\n#{APP}")
    serve("--max-requests", "5", "--mode", "fiber")
    pids = workers
    holding = ask("/hold")
    wait_until { File.exist?(path("held")) }
    found = nil
    # Each worker writes its limit once a second.
    wait_until { (found = stats)[:capacity] && found[:capacity] + found[:running] == 10 }
    held = found[:per_worker].find { |one| one[:running] == found[:per_worker].map { |each| each[:running] }.max }

    assert_equal ["fiber", 2, 10 - found[:running]], found.values_at(:mode, :workers, :capacity)
    assert_equal pids.sort, found[:per_worker].map { |one| one[:pid] }.sort
    assert_equal [0, 1], found[:per_worker].map { |one| one[:worker] }
    assert_operator held[:running], :>=, 1
    assert_operator found[:requests], :>=, 2
  ensure
    write("go", "")
    holding&.close
  end
end
