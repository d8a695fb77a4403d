# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "monitor"

# R4: thread primitives are safe and don't block the loop.
class BlockHooksTest < Minitest::Test
  include Scheduled

  # Counts the turns that another fiber gets while the block waits.
  def turns_while
    turns = 0
    done = false
    Fiber.schedule do
      until done
        turns += 1
        Fiber.scheduler.yield
      end
    end
    yield
    done = true
    turns
  end

  def test_threads_are_joined_while_others_go_on
    scheduled do
      gate = Queue.new
      threads = Array.new(3) { |i| Thread.new { gate.pop && i } }
      values = nil
      Fiber.schedule { values = threads.map(&:value) }
      assert_nil values
      3.times { gate << true }
      until_true { values }

      assert_equal [0, 1, 2], values
    end
  end

  def test_thread_join_takes_a_limit
    scheduled do
      gate = Queue.new
      thread = Thread.new { gate.pop }

      assert_nil thread.join(0.01)
      gate << true

      assert_same thread, thread.join
    end
  end

  def test_a_thread_and_fibers_share_a_mutex
    counter = 0
    mutex = Mutex.new
    scheduled do
      add = lambda do
        2_000.times do
          mutex.synchronize do
            read = counter
            Thread.pass
            counter = read + 1
          end
        end
      end
      thread = Thread.new(&add)
      fibers = Array.new(2) { Fiber.schedule(&add) }
      thread.join
      until_true { fibers.none?(&:alive?) }
    end

    assert_equal 6_000, counter
  end

  def test_a_mutex_is_owned_by_the_fiber_that_locked_it
    scheduled do
      mutex = Mutex.new
      order = []
      Fiber.schedule do
        mutex.synchronize do
          order << :first
          sleep 0.01
          order << :still_first
        end
      end
      mutex.synchronize { order << :second }

      assert_equal %i[first still_first second], order
    end
  end

  def test_a_queue_hands_over_between_a_thread_and_a_fiber
    received = scheduled do
      queue = Queue.new
      thread = Thread.new do
        10_000.times { |i| queue << i }
        queue.close
      end
      items = []
      while (item = queue.pop)
        items << item
      end
      thread.join
      items
    end

    assert_equal Array.new(10_000) { |i| i }, received
  end

  def test_a_sized_queue_holds_its_writer_back
    scheduled do
      queue = SizedQueue.new(2)
      written = 0
      Fiber.schedule do
        5.times do |i|
          queue << i
          written += 1
        end
      end

      assert_equal 2, written
      assert_equal [0, 1, 2, 3, 4], Array.new(5) { queue.pop }
    end
  end

  def test_queue_pop_takes_a_timeout
    scheduled { assert_nil Queue.new.pop(timeout: 0.01) }
  end

  def test_waits_take_every_limit_that_ruby_takes
    scheduled do
      queue = Thread::Queue.new
      assert_nil queue.pop(timeout: -1)
      assert_nil queue.pop(timeout: -0.5)
      [Float::INFINITY, 1e30].each do |limit|
        Fiber.schedule { queue << limit }
        assert_equal limit, queue.pop(timeout: limit)
        thread = Thread.new { Thread.pass }
        assert_same thread, thread.join(limit)
      end
      sleeper = Thread.new { sleep }
      assert_nil sleeper.join(-1)
      sleeper.kill
    end
  end

  def test_a_condition_variable_waits_and_is_signalled
    scheduled do
      mutex = Mutex.new
      condition = ConditionVariable.new
      ready = false
      seen = []
      waiting = Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex) until ready
          seen << :woken
        end
      end
      mutex.synchronize do
        ready = true
        condition.signal
      end
      until_true { !waiting.alive? }

      assert_equal [:woken], seen
    end
  end

  def test_a_condition_variable_takes_a_timeout
    scheduled do
      mutex = Mutex.new
      mutex.synchronize { ConditionVariable.new.wait(mutex, 0.01) }

      refute_predicate mutex, :locked?
    end
  end

  # fiber-scheduler trap 5: cancelled inside ConditionVariable#wait, the mutex is held again when it unwinds.
  def test_a_raise_into_a_condition_wait_leaves_the_mutex_usable
    scheduled do
      mutex = Mutex.new
      outcome = nil
      waiting = Fiber.schedule do
        mutex.synchronize { ConditionVariable.new.wait(mutex) }
      rescue RuntimeError, ThreadError => e
        outcome = e
      end
      waiting.raise("stop")
      until_true { outcome }
      skip "Ruby < 3.4 loses the mutex here (Ruby #12158)" if outcome.is_a?(ThreadError) && RUBY_VERSION < "3.4"

      assert_equal "stop", outcome.message
      assert mutex.try_lock
    end
  end

  def test_a_monitor_can_be_entered_again_by_its_owner_only
    scheduled do
      monitor = Monitor.new
      order = []
      Fiber.schedule do
        monitor.synchronize do
          monitor.synchronize { order << :inner }
          sleep 0.01
          order << :outer
        end
      end
      monitor.synchronize { order << :other }

      assert_equal %i[inner outer other], order
    end
  end

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
      [0.03, 0.01, 0.02, 0.0].each { |duration| Fiber.schedule { sleep(duration) && order << duration } }
    end

    assert_equal [0.0, 0.01, 0.02, 0.03], order
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

  # A13: who becomes ready during a turn runs in the next one.
  def test_each_ready_fiber_runs_once_a_turn
    order = []
    scheduled do |scheduler|
      3.times do |i|
        scheduler.spawn(lambda do
          3.times do
            order << i
            scheduler.yield
          end
        end)
      end
    end

    assert_equal [0, 1, 2] * 3, order
  end

  def test_a_spent_fiber_runs_after_all_of_its_turn
    order = []
    scheduled do |scheduler|
      scheduler.spawn(lambda do
        scheduler.yield_spent
        order << :spent
      end)
      2.times { scheduler.spawn(-> { order << :ready }) }
    end

    assert_equal %i[ready ready spent], order
  end

  def test_only_one_spent_fiber_runs_a_turn
    turns = []
    scheduled do |scheduler|
      3.times do
        Fiber.schedule do
          scheduler.yield_spent
          turns << scheduler.statistics[:turns]
        end
      end
    end

    assert_equal turns.uniq, turns
  end

  def test_a_wait_in_a_nested_fiber_and_in_an_enumerator
    result = scheduled do
      numbers = Enumerator.new do |yielder|
        3.times do |i|
          sleep 0.001
          yielder << i
        end
      end
      nested = Fiber.new do
        sleep 0.001
        Fiber.yield :half
        sleep 0.001
        :whole
      end
      [numbers.next, nested.resume, numbers.next, nested.resume, numbers.next]
    end

    assert_equal [0, :half, 1, :whole, 2], result
  end

  def test_a_fiber_of_the_programs_own_waits_outside_of_any_scheduled_one
    in_thread do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      ran = []
      Fiber.schedule do
        sleep 0.001
        ran << :scheduled
      end
      value = Fiber.new(blocking: false) do
        sleep 0.01
        ran << :own
        :value
      end.resume

      assert_equal :value, value
      assert_equal %i[scheduled own], ran
    end
  end

  def test_others_run_while_one_waits
    scheduled { assert_operator turns_while { sleep 0.01 }, :>, 1 }
  end
end
