# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Kernel#sleep, and what ends it.
class SleepTest < Minitest::Test
  include Scheduled

  def test_sleep_waits_its_time_and_returns_whole_seconds
    scheduled do
      started = now
      result = sleep(0.05)

      assert_includes [0, 1], result
      assert_operator now - started, :>=, 0.05
    end
  end

  def test_sleep_zero_lets_the_others_run
    scheduled do
      order = []
      Fiber.schedule do
        2.times do |i|
          order << "a#{i}"
          sleep 0
        end
      end
      Fiber.schedule do
        2.times do |i|
          order << "b#{i}"
          sleep 0
        end
      end
      until_true { order.size == 4 }

      assert_equal %w[a0 b0 a1 b1], order
    end
  end

  def test_sleep_refuses_what_ruby_refuses
    scheduled do
      assert_raises(ArgumentError) { sleep(-1) }
      assert_raises(TypeError) { sleep("long") }
      assert_raises(RangeError, FloatDomainError) { sleep(Float::INFINITY) }
      assert_raises(RangeError, FloatDomainError) { sleep(Float::NAN) }
    end
  end

  def test_sleepers_wake_in_the_order_of_their_deadlines
    order = []
    scheduled do
      [0.3, 0.1, 0.2, 0.0].each do |duration|
        Fiber.schedule do
          due = now + duration # on a busy machine maybe in another order than the durations
          sleep(duration)
          order << due
        end
      end
    end

    assert_equal 4, order.size
    assert_equal order.sort, order
  end

  def test_sleep_without_a_limit_ends_by_unblock
    scheduled do |scheduler|
      woken = false
      fiber = Fiber.schedule do
        sleep
        woken = true
      end
      scheduler.unblock(nil, fiber)
      until_true { woken }
    end
  end

  def test_unblock_from_another_thread_wakes_a_loop_that_sleeps
    woken = scheduled do |scheduler|
      fiber = Fiber.current
      Thread.new { scheduler.unblock(nil, fiber) }
      scheduler.block(:test, 10)
    end

    assert woken
  end

  def test_unblock_of_a_fiber_that_does_not_wait_is_ignored
    scheduled do |scheduler|
      scheduler.unblock(nil, Fiber.current)
      scheduler.unblock(nil, Fiber.new { nil })

      refute scheduler.block(:test, 0.001), "an early unblock must not end a later wait"
    end
  end

  def test_unblock_after_the_scheduler_is_closed_is_harmless
    scheduler = Heddle::Scheduler.new
    scheduler.close

    assert_nil scheduler.unblock(nil, Fiber.current)
  end
end
