# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# The engine counts how long each request took, from its complete head to its response.
class LatencyTest < Minitest::Test
  include ServerHelpers

  BOUNDS = Heddle::HTTP::Engine::LATENCY_BOUNDS

  # What the engine says when nothing is under way any more. It is read in the loop, which is where it counts.
  def counted(app, **options)
    start(app, **options)
    engine = server.engine
    yield
  ensure
    stop
    @counts = engine.latencies
    @sum = engine.latency_sum
  end

  # @return [Array<Range>] where the requests lie, in seconds
  def ranges
    @counts.each_with_index.flat_map { |count, i| [(i == 0 ? 0.0 : BOUNDS[i - 1])...BOUNDS[i]] * count }
  end

  def test_every_response_is_counted_for_each_writer
    bodies = { "/array" => ["a"], "/each" => Enumerator.new { |to| to << "a" }, "/call" => lambda(&:close) }
    app = ->(env) { [200, {}, bodies.fetch(env["PATH_INFO"])] }
    counted(app, lint: false) { [*bodies.keys, "/missing"].each { |path| get(path) } }

    assert_equal 4, @counts.sum
  end

  def test_requests_that_wait_are_where_they_belong_and_others_too
    app = lambda do |env|
      sleep 0.05 if env["PATH_INFO"] == "/slow"
      [200, {}, ["a"]]
    end
    taken = 0
    counted(app) do
      get("/quick")
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      get("/slow")
      taken = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
    end

    assert_equal 2, ranges.size
    assert_operator ranges.last.end, :>, 0.05
    assert_operator ranges.last.begin, :<=, taken
    assert_operator @sum, :>=, 0.05
    assert_operator @sum, :<=, ranges.sum(&:end)
  end

  def test_pipelined_requests_count_one_by_one
    counted(text) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 40, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      read_all(socket)
    end

    assert_equal 41, @counts.sum
  end

  def test_hijacked_and_rejected_requests_are_not_counted
    app = ->(env) { env["rack.hijack"].call.close }
    counted(app, lint: false) do
      exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      exchange("nonsense\r\n\r\n")
    end

    assert_equal 0, @counts.sum
  end

  def test_the_bounds_rise_and_have_no_end
    assert_equal BOUNDS.sort, BOUNDS
    assert_equal Float::INFINITY, BOUNDS.last
    assert_equal BOUNDS.size, Heddle::HTTP::Engine.new.latencies.size
    assert Ractor.shareable?(BOUNDS)
  end

  def test_a_server_says_that_it_stops
    start(text)

    refute_predicate server, :stopping?
    stopped = server
    stop

    assert_predicate stopped, :stopping?
  end
end
