# frozen_string_literal: true

# test: each version

require "test_helper"
require_relative "../offload/support/native_calls"
require_relative "server_helpers"

# What the server reports about a request that blocked the others, and that a request which computes blocks none.
class StallReportTest < Minitest::Test
  include Heddle::TestHelpers
  include ServerHelpers

  LONG = 0.2

  def setup
    skip "requests run on threads" unless %w[fiber single].include?(ENV.fetch("HEDDLE_MODE", "fiber"))
    skip "the application has a thread of its own" if ENV["HEDDLE_MODE"] == "single"
    require NativeCallsLibrary.path
    Heddle::Stalls.reset
  end

  def test_a_request_that_holds_the_gvl_in_native_code_is_logged_and_counted
    app = lambda do |env|
      NativeCalls.hold(LONG) if env["PATH_INFO"].start_with?("/reports")
      [200, {}, ["done"]]
    end
    serving(app) do
      get("/reports/7/slow?secret=1")
      get("/")
      @metrics = Heddle::Server::Metrics.new(Heddle::Server::Control::SingleProcess.new(server, @log).report).to_s
    end

    assert_includes held.map(&:request), "GET /reports/7/slow"
    assert_includes Heddle::Stalls.statistics[:by_endpoint], "GET /reports/:id/slow"
    labels = Regexp.escape('{worker="0",endpoint="GET /reports/:id/slow"}')

    assert_match(/^heddle_endpoint_stalls_total#{labels} [1-9]/, @metrics)
    assert_match(/^heddle_endpoint_stall_seconds_total#{labels} (0\.[1-9]|[1-9])/, @metrics)
    assert_match(%r{stall of \d+ ms: a native call that held Ruby's lock, in GET /reports/7/slow, at .+_test.rb:\d+},
                 output.string)
  end

  def test_a_stall_before_the_server_is_ready_is_neither_logged_nor_counted
    serving(->(_) { [200, {}, ["done"]] }, ready: -> { NativeCalls.hold(LONG) }) { get("/") }

    assert_empty held
    assert_equal 0, Heddle::Stalls.statistics[:by_cause][:native_with_gvl][:count]
    refute_match(/native call that held/, output.string)
  end

  def test_a_stall_of_a_requests_task_is_logged_with_the_request
    serving(->(_) { [200, {}, [Heddle.async { Heddle.async { NativeCalls.hold(LONG) }.wait }.wait.to_s]] }) do
      get("/tasks")
    end

    assert_includes held.map(&:request), "GET /tasks"
  end

  def test_a_stall_after_the_request_has_ended_has_no_request
    go = Thread::Queue.new
    gone = Thread::Queue.new
    app = lambda do |_|
      Fiber.schedule { gone << [go.pop, NativeCalls.hold(LONG)] }
      [200, {}, ["done"]]
    end
    serving(app) do
      get("/stray")
      sleep 0.001 until server.running_requests.empty?
      go << true
      gone.pop
    end

    refute_includes held.map(&:request), "GET /stray"
  end

  def held = Heddle::Stalls.recent.select { |one| one.cause == :native_with_gvl }

  def test_a_request_that_computes_lets_the_others_be_answered
    finish = false
    app = lambda do |env|
      if env["PATH_INFO"] == "/compute"
        nil until finish
      else
        finish = true
      end
      [200, {}, ["done"]]
    end
    serving(app) do
      computing = Thread.new { get("/compute").body }

      assert_equal "done", get("/").body
      assert_equal "done", computing.value
    end
  end

  def test_metrics_have_a_series_for_each_cause_and_endpoint
    stalls = { count: 1, seconds: 0.25, longest: 0.25, by_cause: { ruby: { count: 1, seconds: 0.25, longest: 0.25 } },
               by_endpoint: { "GET /a/b" => { count: 1, seconds: 0.25, longest: 0.25 } } }
    text = Heddle::Server::Metrics.new(workers: [{ index: 0, state: "running", stalls: }]).to_s

    assert_includes text, "heddle_stalls_total{worker=\"0\",cause=\"ruby\"} 1\n"
    assert_includes text, "heddle_endpoint_stalls_total{worker=\"0\",endpoint=\"GET /a/b\"} 1\n"
    assert_includes text, "heddle_endpoint_stall_seconds_total{worker=\"0\",endpoint=\"GET /a/b\"} 0.25\n"
  end
end
