# frozen_string_literal: true

require_relative "support/loop_helpers"

class EveryTest < Minitest::Test
  include Heddle::LoopHelpers

  # A clock that only sleeping and working move on, so that the ticks are exact.
  class StillClock < Heddle::Concurrency::Every
    attr_accessor :time

    def now = @time ||= 100.0

    def sleep(seconds) = @time += seconds
  end

  def test_ticks_are_multiples_of_the_interval_however_long_the_block_takes
    clock = StillClock.new(1)
    times = []
    clock.each do |tick|
      times << clock.time
      clock.time += 0.4 # work
      break if tick == 5
    end

    assert_equal [101.0, 102.0, 103.0, 104.0, 105.0], times
  end

  def test_missed_ticks_are_skipped
    clock = StillClock.new(1)
    ticks = []
    clock.each do |tick|
      ticks << [tick, clock.time]
      clock.time += 2.5 if tick == 2
      break if tick == 6
    end

    assert_equal [[1, 101.0], [2, 102.0], [5, 105.0], [6, 106.0]], ticks
  end

  def test_returns_a_task_that_ticks_until_it_is_cancelled
    ticks = 0
    in_loop do
      ticked = Heddle::Condition.new
      task = Heddle.every(0.001, name: "ticker") { (ticks += 1) && ticked.signal }
      assert_equal [0, "ticker"], [ticks, task.name]
      3.times { ticked.wait }
      task.cancel
    end

    assert_operator ticks, :>=, 3
  end

  def test_background_ticks_end_with_the_scope
    in_loop { assert_predicate Heddle.scope { Heddle.every(3_600, background: true) { flunk } }, :cancelled? }
  end

  def test_does_not_swallow_stop_iteration
    assert_raises(StopIteration) { in_loop { Heddle.every(0.001) { [].each.next } } }
  end

  def test_needs_a_positive_interval_and_a_block
    in_loop do
      [0, -1, nil, Float::INFINITY].each { |bad| assert_raises(ArgumentError) { Heddle.every(bad) {} } }
      assert_raises(ArgumentError) { Heddle.every(1) }
    end
    assert_raises(Heddle::NoLoopError) { Heddle.every(1) {} }
  end
end
