# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "server_helpers"

# The slowest responses are remembered, and the others cost nothing.
class SlowestTest < Minitest::Test
  include ServerHelpers

  # What the engine remembers of what the block asks for, when nothing is under way any more.
  def remembered(app)
    engine = nil
    serving(app) do
      engine = server.engine
      yield
    end
    engine.slowest
  end

  def test_a_slow_response_is_listed_with_request_time_and_status
    app = lambda do |env|
      sleep 0.05 if env["PATH_INFO"] == "/slow"
      [env["PATH_INFO"] == "/slow" ? 404 : 200, {}, ["a"]]
    end
    request, seconds, ago, status = remembered(app) { get("/slow?a=b") }.first

    assert_equal ["GET /slow?a=b", 404], [request, status]
    assert_operator seconds, :>=, 0.05
    assert_includes 0..PATIENCE, ago
  end

  def test_the_slowest_come_first_and_no_more_than_a_few
    app = lambda do |env|
      sleep env["PATH_INFO"].delete("/").to_f / 1000
      [200, {}, ["a"]]
    end
    times = (2..22).to_a.shuffle
    found = remembered(app) { times.map { |ms| Thread.new { get("/#{ms}") } }.each(&:join) }

    assert_equal 16, found.size
    assert_equal found.map { |_, seconds| seconds }.sort.reverse, found.map { |_, seconds| seconds }
  end

  def test_a_long_target_is_cut
    found = remembered(->(_) { [200, {}, [sleep(0.005).to_s]] }) { get("/#{"x" * 1000}") }

    assert_equal 200, found.first.first.bytesize
  end

  def test_the_slowest_requests_are_what_json_can_carry
    app = lambda do |_|
      sleep 0.01
      [200, {}, ["a"]]
    end
    serving(app) do
      get("/a?b")
      report = JSON.parse(JSON.generate(Heddle::Server::WorkerStatus.new(server, @log).to_h), symbolize_names: true)

      assert_equal "GET /a?b", report[:slowest].first[:request]
    end
  end
end
