# frozen_string_literal: true

require_relative "support/loop_helpers"
require_relative "../support/fiber_of"

class SemaphoreTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_an_infinite_timeout_is_none
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      waiting = Heddle.async { semaphore.acquire(timeout: Float::INFINITY) }
      turns
      semaphore.release
      assert waiting.value
    end
  end

  def test_lets_only_so_many_in
    inside = most = 0
    in_loop do
      semaphore = Heddle::Semaphore.new(2)
      8.times do
        Heddle.async do
          semaphore.acquire do
            most = [most, inside += 1].max
            turns(2)
            inside -= 1
          end
        end
      end
    end

    assert_equal 2, most
  end

  def test_first_come_first_served
    order = []
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      5.times { |i| Heddle.async { semaphore.acquire { order << i } } }
      turns
      assert_equal 5, semaphore.waiting
      semaphore.release
    end

    assert_equal [0, 1, 2, 3, 4], order
  end

  def test_block_returns_its_value_and_releases_on_every_exit
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      assert_equal 1, semaphore.acquire { 1 }
      assert_raises(KeyError) { semaphore.acquire { raise KeyError } }
      assert_equal(2, catch(:out) { semaphore.acquire { throw :out, 2 } })
      assert_equal 1, semaphore.free
    end
  end

  def test_timeout_gives_up_its_place
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      assert_raises(Heddle::TimeoutError) { semaphore.acquire(timeout: 0.001) }
      assert_raises(Heddle::TimeoutError) { semaphore.acquire(timeout: 0) { flunk } }
      assert_equal 0, semaphore.waiting
      semaphore.release
      assert semaphore.acquire(timeout: 0.001)
    end
  end

  def test_cancelled_waiter_leaves_the_queue
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      victim = Heddle.async { semaphore.acquire }
      other = Heddle.async { semaphore.acquire && :mine }
      turns
      victim.cancel
      turns
      semaphore.release
      assert_equal :mine, other.value
    end
  end

  def test_permit_given_to_one_that_is_cancelled_at_that_moment_is_not_lost
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      victim = Heddle.async { semaphore.acquire && flunk }
      turns
      semaphore.release
      victim.cancel
      victim.wait
      assert_equal 1, semaphore.free
      assert semaphore.try_acquire
      refute semaphore.try_acquire
    end
  end

  def test_permit_given_to_a_fiber_that_is_killed_at_that_moment_is_not_lost
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      victim = Heddle.async { semaphore.acquire && flunk }
      turns
      semaphore.release
      fiber_of(victim).kill
      assert_equal 1, semaphore.free
    end
  end

  def test_works_in_a_nested_fiber
    in_loop do
      semaphore = Heddle::Semaphore.new(1)
      semaphore.acquire
      task = Heddle.async { Enumerator.new { |y| y << semaphore.acquire }.next }
      turns
      semaphore.release
      assert task.value
    end
  end

  def test_released_too_often_is_a_mistake
    assert_raises(ThreadError) { Heddle::Semaphore.new(1).release }
  end

  def test_has_a_limit
    [0, nil, 1.5].each { |bad| assert_raises(ArgumentError) { Heddle::Semaphore.new(bad) } }
  end

  def test_needs_no_loop_without_waiters
    semaphore = Heddle::Semaphore.new(1)
    semaphore.acquire
    error = assert_raises(Heddle::NoLoopError) { semaphore.acquire }
    assert_match(/Heddle\.run/, error.message)
  end

  def test_tasks_of_two_loops_cannot_wait_for_the_same
    semaphore = Heddle::Semaphore.new(1)
    semaphore.acquire
    in_loop do
      Heddle.async { semaphore.acquire }
      turns
      error = Thread.new { assert_raises(ThreadError) { Heddle.run { semaphore.acquire } } }.value
      assert_match(/another thread's loop/, error.message)
      semaphore.release
    end
  end

  def test_fibers_that_a_closed_loop_has_left_waiting_get_no_permit
    semaphores = Array.new(2) { Heddle::Semaphore.new(1).tap(&:try_acquire) }
    close_loop_during(*semaphores.map { |one| -> { one.acquire } })
    semaphores.first.release
    in_loop { assert_raises(Heddle::TimeoutError) { semaphores.last.acquire(timeout: 0.001) } }

    assert_equal 1, semaphores.first.free
  end
end
