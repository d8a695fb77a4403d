# frozen_string_literal: true

require_relative "support/loop_helpers"

class TimersTest < Minitest::Test
  include Heddle::LoopHelpers

  # Calls what it is given at once.
  class Prompt
    def post(timer) = timer.call
  end

  # Keeps it.
  class Slow
    attr_reader :posted

    def initialize = @posted = []
    def post(timer) = @posted << timer
  end

  def timers = Heddle::Concurrency::Context.of(Fiber.scheduler).timers

  def test_a_block_is_called_again_and_again_until_its_timer_is_stopped
    count = 0
    in_loop do
      third = Heddle::Promise.new
      timer = timers.every(0.001, Prompt.new) do
        next unless (count += 1) == 3

        timer.stop
        third.resolve
      end
      third.wait
      later = Heddle::Promise.new
      timers.after(0.01, Prompt.new) { later.resolve }
      later.wait
    end

    assert_equal 3, count
  end

  def test_ticks_that_come_while_one_is_pending_are_left_out
    slow = Slow.new
    count = 0
    in_loop do
      timers.every(0.001, slow) { count += 1 }
      2.times do
        later = Heddle::Promise.new
        timers.after(0.02, Prompt.new) { later.resolve }
        later.wait
        slow.posted.shift.call
      end
    end

    assert_equal [2, 0], [count, slow.posted.size]
  end

  def test_the_earliest_comes_first_whatever_the_order_in_which_they_were_set
    order = []
    in_loop do
      done = Heddle::Promise.new
      [0.3, 0.1, 0.2].each do |seconds|
        # A pause of the machine between two of them may change the order in which they are due.
        due = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        timers.after(seconds, Prompt.new) { done.resolve if order.push(due).size == 3 }
      end
      done.wait
    end

    assert_equal order.sort, order
  end

  def test_a_loop_does_not_wait_for_them
    called = false
    in_loop { timers.every(3_600, Prompt.new) { called = true } }

    refute called
  end

  def test_a_stopped_timer_keeps_no_references
    in_loop do
      timer = timers.every(3_600, Prompt.new) { nil }
      timer.stop

      assert_equal [nil, nil], [timer.receiver, timer.block]
      assert_nil timer.call
    end
  end

  def test_when_the_last_is_stopped_their_task_ends
    in_loop do
      kept = Array.new(3) { timers.every(3_600, Prompt.new) { nil } }
      task = timers.instance_variable_get(:@task)
      kept.each(&:stop)

      assert_predicate timers.instance_variable_get(:@alarms), :empty?
      task.wait
    end
  end

  def test_a_timer_that_is_stopped_while_it_is_posted_is_not_repeated
    posted = 0
    receiver = Object.new
    receiver.define_singleton_method(:post) { |timer| (posted += 1) && timer.stop }
    in_loop do
      timers.every(0.001, receiver) { nil }
      later = Heddle::Promise.new
      timers.after(0.01, Prompt.new) { later.resolve }
      later.wait

      assert_predicate timers.instance_variable_get(:@alarms), :empty?
    end
    assert_equal 1, posted
  end

  def test_an_interval_is_a_positive_number
    in_loop do
      [0, -1, nil, Float::INFINITY].each do |interval|
        assert_raises(ArgumentError) { timers.every(interval, Prompt.new) { nil } }
      end
    end
  end
end
