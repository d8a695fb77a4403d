# frozen_string_literal: true

require "test_helper"
require "heddle/server"

class RactorEngineStatisticsTest < Minitest::Test
  EngineStatistics = Heddle::Server::Ractors::EngineStatistics

  def statistics(number)
    EngineStatistics.new(
      requests: number, rejected: number, answers: [0, number], rejections: { 400 => number }, gone: number,
      durations: { ["GET", "http", 11, 200 + number] => [1, number], ["PUT", "http", 11, 200] => [number, 0] },
      latencies: [number, 1], latency_sum: number.to_f,
      spent: { query: [[number, 0], 0.5] }, endpoints: { "GET /" => { query: 0.5 } },
      slowest: [["GET /#{number}", 1.0, 0.0, 200]],
      spooled: number, body_disk_used: number * 10, websockets: { open: number, sent: number }
    )
  end

  def test_of_two_everything_is_summed_and_only_the_later_one_knows_what_was_slow_lately
    both = statistics(1) + statistics(2)

    assert_equal [3, 3, [0, 3], { 400 => 3 }, [3, 2], 3.0, 3], both.deconstruct_keys(nil).except(:slowest).values_at(
      :requests, :rejected, :answers, :rejections, :latencies, :latency_sum, :gone
    )
    assert_equal [[1, 1], [1, 2], [3, 0]], both.durations.sort.map(&:last)
    assert_equal [3, 20], [both.spooled, both.body_disk_used]
    assert_equal({ open: 2, sent: 3 }, both.websockets)
    assert_equal [{ query: [[3, 0], 1.0] }, { "GET /" => { query: 1.0 } }], [both.spent, both.endpoints]
    assert_equal ["GET /2"], both.slowest.map(&:first)
  end

  def test_counters_equal_those_of_the_engine
    assert_equal 0, EngineStatistics.of(Heddle::HTTP::Engine.new, 5).requests
    assert_equal 5, EngineStatistics.of(Heddle::HTTP::Engine.new, 5).gone
  end
end
