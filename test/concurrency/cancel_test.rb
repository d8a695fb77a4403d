# frozen_string_literal: true

require_relative "support/loop_helpers"

class CancelTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_is_raised_at_the_wait_and_passes_a_plain_rescue
    log = []
    in_loop do
      task = Heddle.async do
        forever
      rescue => e # rubocop:disable Style/RescueStandardError
        log << e
      ensure
        log << :ensured
      end
      turns
      task.cancel
    end

    assert_equal [:ensured], log
  end

  def test_is_raised_only_once_so_that_clean_up_can_wait
    log = []
    in_loop do
      task = Heddle.async do
        forever
      ensure
        turns
        sleep 0.001
        Thread.new { :work }.join
        log << :rolled_back
      end
      turns
      task.cancel
    end

    assert_equal [:rolled_back], log
  end

  def test_clean_up_may_use_scopes_and_time_limits_of_its_own
    log = []
    in_loop do
      task = Heddle.async do
        forever
      ensure
        log << Heddle.map([1, 2]) { |i| turns && i }
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.001) { forever } }
        log << Heddle.timeout(5) { turns && :in_time }
      end
      turns
      task.cancel
    end

    assert_equal [[1, 2], :in_time], log
  end

  def test_is_raised_again_after_the_grace_period
    log = []
    in_loop(cancel_grace: 0.01) do
      task = Heddle.async do
        forever
      ensure
        begin
          forever
        rescue Heddle::Cancelled
          log << :again
          raise
        end
      end
      turns
      took = seconds { task.cancel && task.wait }
      assert_operator took, :>=, 0.01
    end

    assert_equal [:again], log
  end

  def test_is_raised_after_every_grace_period_until_the_task_ends
    times = 0
    in_loop(cancel_grace: 0.002) do
      task = Heddle.async do
        forever
      rescue Heddle::Cancelled
        (times += 1) < 3 ? retry : :given_up
      end
      turns
      task.cancel
      task.wait
      assert_predicate task, :cancelled?
    end

    assert_equal 3, times
  end

  def test_grace_of_a_scope_overrides_that_of_the_loop
    in_loop(cancel_grace: 60) do
      took = seconds do
        Heddle.scope(cancel_grace: 0.005) do |scope|
          Heddle.async do
            forever
          ensure
            forever
          end
          turns
          scope.cancel
        end
      end
      assert_operator took, :<, 30
    end
  end

  def test_finished_clean_up_is_not_interrupted_later
    in_loop(cancel_grace: 0.002) do
      Heddle.scope do |scope|
        scope.cancel
        turns
      end
      sleep 0.01
    end
  end

  def test_cancels_the_whole_subtree_at_once
    log = []
    in_loop do
      task = Heddle.async(name: "top") do
        Heddle.async do
          forever
        ensure
          log << :leaf
        end
        begin
          forever
        ensure
          turns(20)
          log << :top
        end
      end
      turns
      task.cancel
    end

    assert_equal %i[leaf top], log
  end

  def test_of_the_own_task_is_raised_at_the_next_wait
    log = []
    in_loop do
      task = Heddle.async do
        Heddle::Task.current.cancel
        log << :still_here
        turns
        log << :never
      end
      task.wait
      assert_predicate task, :cancelled?
    end

    assert_equal [:still_here], log
  end

  def test_outer_cancelling_waits_for_the_unwinding_of_the_inner_one
    log = []
    in_loop do
      task = Heddle.async do
        begin
          Heddle.timeout(0.001) do
            forever
          ensure
            log << :rollback_begins
            task.cancel
            turns
            log << :rollback_done
          end
        rescue Heddle::TimeoutError
          log << :timeout
        end
        turns
        log << :never
      end
      task.wait
      assert_predicate task, :cancelled?
    end

    assert_equal %i[rollback_begins rollback_done timeout], log
  end

  def test_is_raised_in_sleep_queue_mutex_io_and_thread_join
    reader, writer = IO.pipe
    lock = Thread::Mutex.new
    queue = Thread::Queue.new
    thread = Thread.new { queue.pop }
    in_loop do
      lock.lock
      tasks = [
        Heddle.async { sleep },
        Heddle.async { Thread::Queue.new.pop },
        Heddle.async { lock.synchronize { flunk } },
        Heddle.async { reader.read(1) },
        Heddle.async { thread.join },
        Heddle.async { Thread::ConditionVariable.new.wait(Thread::Mutex.new.tap(&:lock)) }
      ]
      turns
      tasks.each(&:cancel)
      tasks.each(&:wait)
      assert(tasks.all?(&:cancelled?))
      lock.unlock
      assert(lock.synchronize { true })
    end
  ensure
    queue.close
    thread&.join
    [reader, writer].each(&:close)
  end

  def test_is_raised_in_a_fiber_nested_in_the_task
    log = []
    in_loop do
      task = Heddle.async do
        enumerator = Enumerator.new do |y|
          forever
          y << :never
        ensure
          log << :inner
        end
        enumerator.next
      ensure
        log << :outer
      end
      turns
      task.cancel
      task.wait
      assert_predicate task, :cancelled?
    end

    assert_equal %i[inner outer], log
  end

  def test_failing_clean_up_is_a_failure
    error = assert_raises(IOError) do
      in_loop do
        task = Heddle.async do
          forever
        ensure
          raise IOError, "clean-up failed"
        end
        turns
        task.cancel
      end
    end

    assert_equal "clean-up failed", error.message
  end

  def test_cancelled_that_was_raised_by_hand_ends_the_task_only
    in_loop do
      task = Heddle.async { raise Heddle::Cancelled }
      task.wait
      assert_predicate task, :cancelled?
    end
  end
end
