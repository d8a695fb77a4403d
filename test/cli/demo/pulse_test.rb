# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require "heddle/server"
require "json"

# The figures that the page reads several times a second.
class DemoPulseTest < Minitest::Test
  Demo = Heddle::CLI::Demo

  # A server whose counts are what the test says, a snapshot for each look, and which stops with the last.
  class CountingServer
    attr_reader :engine

    # @param snapshots [Array<Array<Integer>>] how many requests there were in each bucket
    def initialize(*snapshots)
      @snapshots = snapshots
      @looks = 0
      @engine = self
    end

    def latencies = @snapshots.fetch((@looks += 1) - 1)
    def statistics = { connections: 9, idle: 7, running: 2, accepted: 40, limit: nil, waiting: 0, fibers: 5 }
    def stopping? = @looks == @snapshots.size
  end

  def lines_of(server)
    Demo::Pulse.new(server, interval: 0.001).to_enum.map { |line| JSON.parse(line) }
  end

  def test_first_line_has_the_interval_and_the_bounds_of_the_buckets
    first = lines_of(CountingServer.new([0], [0])).first

    assert_in_delta 0.001, first["interval"]
    assert_equal Heddle::HTTP::Engine::LATENCY_BOUNDS.grep(0..1000), first["bounds"]
  end

  def test_line_has_the_counts_since_the_line_before
    _, first, second = lines_of(CountingServer.new([5, 0, 0], [5, 2, 0], [6, 2, 4]))

    assert_equal [2, [1, 2]], first.values_at("answers", "latencies")
    assert_equal [5, [0, 1, 2, 4]], second.values_at("answers", "latencies")
    assert_equal [9, 7, 2, nil, 0], second.values_at("connections", "idle", "running", "limit", "waiting")
    assert_operator second["at"], :>, first["at"]
  end

  def test_body_ends_when_the_server_stops
    assert_equal 3, lines_of(CountingServer.new([0], [0], [0])).size
  end

  def test_counts_are_empty_without_heddles_server
    lines = Demo::Pulse.new(nil, interval: 0.001).to_enum.first(3).map { |line| JSON.parse(line) }

    assert_equal [0, []], lines[1].values_at("answers", "latencies")
    refute lines[1].key?("connections")
  end
end
