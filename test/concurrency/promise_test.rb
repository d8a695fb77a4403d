# frozen_string_literal: true

require_relative "support/loop_helpers"

class PromiseTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_thread_settles_what_a_task_waits_for_and_others_continue
    ticks = 0
    in_loop do
      promise = Heddle::Promise.new
      gate = Thread::Queue.new
      thread = Thread.new { gate.pop && promise.resolve(42) }
      Heddle.async do
        turns
        ticks += 1
        gate << :go
      end
      assert_equal 42, promise.value
      thread.join
    end

    assert_equal 1, ticks
  end

  def test_task_settles_what_a_thread_waits_for
    promise = Heddle::Promise.new
    waiting = Array.new(3) { Thread.new { promise.value } }
    in_loop { Heddle.async { turns && promise.resolve(:done) } }

    assert_equal %i[done done done], waiting.map(&:value)
  end

  def test_two_loops_share_one
    promise = Heddle::Promise.new
    other = Thread.new { Heddle.run { promise.value } }
    in_loop { promise.resolve(7) }

    assert_equal 7, other.value
  end

  def test_rejected_promise_raises_in_every_waiter
    promise = Heddle::Promise.new.reject(KeyError.new("no"))

    2.times { assert_equal "no", assert_raises(KeyError) { promise.value }.message }
    assert_raises(IOError) { Heddle::Promise.new.reject(IOError).value }
    assert_raises(RuntimeError) { Heddle::Promise.new.reject("text").value }
    assert_same promise, promise.wait
  end

  def test_fulfil_settles_with_what_the_block_does
    assert_equal 1, Heddle::Promise.new.fulfil { 1 }.value
    assert_raises(KeyError) { Heddle::Promise.new.fulfil { raise KeyError }.value }
  end

  def test_promise_can_be_settled_only_once
    promise = Heddle::Promise.new
    refute_predicate promise, :settled?
    promise.resolve(nil)
    assert_predicate promise, :settled?
    assert_nil promise.value
    assert_raises(Heddle::Promise::AlreadySettledError) { promise.resolve(1) }
    assert_raises(Heddle::Promise::AlreadySettledError) { promise.reject("late") }
  end

  def test_waits_no_longer_than_its_timeout
    promise = Heddle::Promise.new

    assert_raises(Heddle::TimeoutError) { promise.wait(timeout: 0.001) }
    assert_raises(Heddle::TimeoutError) { promise.value(timeout: 0.001) }
    in_loop { assert_raises(Heddle::TimeoutError) { promise.value(timeout: 0.001) } }
  end

  def test_waiting_is_cancelled_like_any_other
    promise = Heddle::Promise.new
    in_loop do
      task = Heddle.async { promise.value }
      turns
      task.cancel
    end
    promise.resolve(1)

    assert_equal 1, promise.value
  end
end
