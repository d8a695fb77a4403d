# frozen_string_literal: true

require_relative "support/loop_helpers"
require "monitor"

# R4: what Ruby has for threads works between tasks, and between tasks and threads.
class ThreadsTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_three_threads_are_joined_from_one_task_while_others_continue
    ticks = 0
    in_loop do
      Heddle.every(0.01, background: true) { ticks += 1 }
      threads = [8, 16, 24].map do |enough|
        Thread.new do
          sleep 0.005 until ticks >= enough
          enough
        end
      end

      assert_equal [8, 16, 24], threads.map(&:value)
    end
  end

  # A thread and a task take turns at a sequence; each waits until it sees the other's number.
  def test_thread_and_task_compute_one_sequence_under_one_mutex
    numbers = [0, 1]
    lock = Thread::Mutex.new
    changed = Thread::ConditionVariable.new
    step = lambda do |turn|
      500.times do
        lock.synchronize do
          changed.wait(lock) until numbers.size % 2 == turn
          numbers << (numbers[-1] + numbers[-2])
          changed.broadcast
        end
      end
    end
    thread = Thread.new { step.call(0) }
    in_loop { Heddle.async { step.call(1) } }
    thread.join

    assert_equal 1002, numbers.size
    assert_equal fibonacci(1002), numbers
  end

  def test_queue_from_a_thread_to_a_task_and_back
    there = Thread::Queue.new
    back = Thread::SizedQueue.new(100)
    thread = Thread.new do
      10_000.times { |i| there << i }
      there.close
      sum = 0
      while (item = back.pop)
        sum += item
      end
      sum
    end
    in_loop do
      while (item = there.pop)
        back << (item * 2)
      end
      back.close
    end

    assert_equal 99_990_000, thread.value
  end

  def test_monitor_is_held_by_one_task_at_a_time_and_can_be_entered_again
    inside = most = 0
    in_loop do
      monitor = Monitor.new
      5.times do
        Heddle.async do
          monitor.synchronize do
            monitor.synchronize { most = [most, inside += 1].max }
            turns(2)
            inside -= 1
          end
        end
      end
    end

    assert_equal 1, most
  end

  def test_condition_variable_wakes_tasks
    log = []
    in_loop do
      lock = Thread::Mutex.new
      ready = Thread::ConditionVariable.new
      3.times { |i| Heddle.async { lock.synchronize { ready.wait(lock) && log << i } } }
      turns
      lock.synchronize { ready.broadcast }
    end

    assert_equal [0, 1, 2], log.sort
  end

  def test_a_kill_of_the_thread_while_a_task_computes_cancels_what_that_task_waits_for
    log = []
    computing = Thread::Queue.new
    thread = Thread.new do
      in_loop do
        Heddle.async { sleep_and_log(log, :task) }
        Heddle.scope do |scope|
          scope.async { sleep_and_log(log, :inner) }
          turns
          computing << true
          loop { Thread.pass }
        end
      end
    end
    computing.pop
    thread.kill

    assert thread.join(60)
    assert_equal %i[inner task], log.sort
  ensure
    thread.raise("not needed any more") if thread.alive?
  end

  private

  def sleep_and_log(log, name)
    sleep
  ensure
    log << name
  end

  def fibonacci(count)
    Array.new(count - 2).each_with_object([0, 1]) { |_, all| all << (all[-1] + all[-2]) }
  end
end
