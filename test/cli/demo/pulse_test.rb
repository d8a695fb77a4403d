# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require "heddle/server"
require "json"

# What the page is told several times a second.
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
    def rejected = [@looks, 2].min
    def statistics = { connections: 9, idle: 7, running: 2, accepted: 40, limit: nil, waiting: 0, fibers: 5 }
    def stopping? = @looks == @snapshots.size
  end

  def told_by(server)
    Demo::Pulse.new(Demo::Facts.new, server, interval: 0.001).to_enum.map { |line| JSON.parse(line) }
  end

  def test_the_first_line_says_what_the_others_mean
    first = told_by(CountingServer.new([0], [0])).first

    assert_in_delta 0.001, first["interval"]
    assert_equal Heddle::HTTP::Engine::LATENCY_BOUNDS.grep(0..1000), first["bounds"]
  end

  def test_a_line_tells_what_was_counted_since_the_one_before
    _, first, second = told_by(CountingServer.new([5, 0, 0], [5, 2, 0], [6, 2, 4]))

    assert_equal [2, [1, 2], 1], first.values_at("answers", "latencies", "rejected")
    assert_equal [5, [0, 1, 2, 4], 0], second.values_at("answers", "latencies", "rejected")
    assert_equal [9, 7, 2, nil, 0, 5], second.values_at("connections", "idle", "running", "limit", "waiting", "fibers")
    assert_operator second["at"], :>, first["at"]
  end

  def test_a_line_tells_how_late_it_is_and_what_held_up_the_loop_since_the_one_before
    Heddle::Stalls.reset
    stall = Heddle::Stall.new([:ruby, Process.clock_gettime(Process::CLOCK_MONOTONIC) + 3600, 0.5, "", "", 1])
    server = CountingServer.new([0], [0], [0], [0])
    count = 0
    lines = Demo::Pulse.new(Demo::Facts.new, server, interval: 0.001).to_enum.map do |line|
      Heddle::Stalls.send(:count, stall) if (count += 1) == 2
      JSON.parse(line)
    end

    assert_equal [[], [{ "from" => stall.began, "to" => stall.began + 0.5, "cause" => "Ruby code" }], []],
                 lines.drop(1).map { |line| line["stalls"] }
    lines.drop(1).each { |line| assert_operator line["late"], :>=, 0 }
  ensure
    Heddle::Stalls.reset
  end

  def test_facts_come_at_first_and_then_now_and_then
    lines = told_by(CountingServer.new(*Array.new(9) { [0] }))

    assert_equal([1, 5], lines.each_index.select { |index| lines[index].key?("facts") })
    assert_equal Process.pid, lines[1]["facts"]["pid"]
  end

  def test_it_ends_when_the_server_stops
    assert_equal 3, told_by(CountingServer.new([0], [0], [0])).size
  end

  def test_without_heddles_server_there_are_facts_and_no_counts
    lines = Demo::Pulse.new(Demo::Facts.new, nil, interval: 0.001).to_enum.first(3).map { |line| JSON.parse(line) }

    assert_equal [0, []], lines[1].values_at("answers", "latencies")
    assert_equal RUBY_VERSION, lines[1]["facts"]["ruby"]
    refute lines[1].key?("connections")
  end
end
