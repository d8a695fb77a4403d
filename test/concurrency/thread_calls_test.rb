# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle"

# Calls of other threads in a loop.
class ThreadCallsTest < Minitest::Test
  LIMIT = 1_000

  def thread_calls = Heddle::Concurrency::Context.of(Fiber.scheduler).thread_calls

  def test_calls_run_in_order_and_a_thread_waits_when_too_many_are_queued
    done = []
    waiting = nil
    Heddle.run do
      calls = thread_calls
      pushed = 0
      thread = Thread.new { (LIMIT + 5).times { |number| calls.push { done << number } && (pushed += 1) } }
      Thread.pass until thread.stop? # the loop runs nothing meanwhile
      waiting = pushed
      thread.join
      Heddle.run { sleep 0 until done.size == LIMIT + 5 }
    end

    assert_equal LIMIT, waiting
    assert_equal (0...(LIMIT + 5)).to_a, done
  end

  def test_calls_for_an_ended_loop_are_dropped
    calls = Heddle.run { thread_calls.tap { sleep 0 } }
    done = []
    Thread.new { (LIMIT + 5).times { |number| calls.push { done << number } } }.join

    assert_empty done
    error = Thread.new { assert_raises(IOError) { calls.ask { done << 1 } } }.value

    assert_equal "the event loop has ended", error.message
  end

  def test_a_queue_is_needed_in_other_threads_only
    Heddle.run do
      calls = thread_calls

      assert_equal [false, true], [calls.needed?, Thread.new { calls.needed? }.value]
    end
  end

  def test_an_asked_block_may_wait_and_its_value_and_its_error_reach_the_thread
    Heddle.run do
      calls = thread_calls
      gate = Thread::Queue.new
      waiting = Thread.new { calls.ask { [gate.pop, Thread.current] } }
      failing = Thread.new { assert_raises(ArgumentError) { calls.ask { raise ArgumentError, "no" } } }

      assert_equal "no", failing.value.message
      gate << 1
      assert_equal [1, Thread.current], waiting.value
    end
  end
end
