# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle/server"

# What an operator sees of the last minute of a loop.
class TimelineTest < Minitest::Test
  CELL_SECONDS = Heddle::Server::Timeline::CELL_SECONDS
  CELLS = Heddle::Server::Timeline::CELLS

  def setup
    @timeline = Heddle::Server::Timeline.new
    @start = 1000.0
  end

  # A look at so many seconds after the start, and the next one a while after it.
  def note(at, lag = 0.0, pause: 0.1) = @timeline.note(@start + at, lag, @start + at + pause)

  def lags(at) = @timeline.lags(@start + at)

  def test_a_loop_that_never_ran_has_no_lag
    assert_equal [nil] * CELLS, lags(0)
  end

  def test_the_newest_is_last_and_what_was_before_its_time_is_unknown
    note(0)
    note(CELL_SECONDS, 0.003)

    assert_equal [nil, nil, 0.003, 0.003], lags(CELL_SECONDS).last(4)
    assert_equal CELLS, lags(CELL_SECONDS).size
  end

  def test_each_cell_has_the_worst_of_its_time
    note(0.01, 0.001)
    note(0.05, 0.02)
    note(0.09, 0.002)

    assert_in_delta 0.02, lags(0.1).last
  end

  def test_a_long_tick_fills_all_steps_that_it_blocked
    note(0)
    note(1.0, 0.9)

    assert_equal [0.9] * 5, lags(1.0).last(5)
  end

  def test_between_two_looks_nothing_was_late
    note(0)
    note(1.0, 0.0, pause: 1.0)

    assert_equal [nil, 0.0, 0.0, 0.0, 0.0, 0.0], lags(1.0).last(6)
  end

  def test_while_the_loop_is_held_up_its_lag_grows
    note(0)

    assert_equal [nil, 0.0], lags(0.11).last(2)
    assert_equal 5, lags(1.1).last(5).count { |lag| (lag - 1.0).abs < 0.001 }
  end

  def test_the_timeline_is_bounded
    2_000.times { |i| note(i * 0.1, 0.001) }
    note(400.0, 100.0)

    assert_equal [100.0] * CELLS, lags(400.0)
    assert_equal [0.0] * CELLS, lags(400.0 + 200.0).map { |lag| lag > 150 ? 0.0 : lag }
  end

  def test_after_a_long_time_without_a_look_nothing_old_is_left
    note(0, 0.5)
    note(100.0, 0.0, pause: 1000)

    assert_equal [0.0] * CELLS, lags(100.0)
    assert_equal [0.0] * CELLS, lags(300.0)
  end
end
