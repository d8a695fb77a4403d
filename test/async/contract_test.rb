# frozen_string_literal: true

require "test_helper"
require "heddle/async"
require "async/barrier"
require "async/idler"
require "async/notification"
require "async/semaphore"
require_relative "../concurrency/support/loop_helpers"

# What async's classes ask of the scheduler under which they run, answered by Heddle's.
class AsyncContractTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_a_task_runs_at_once_until_it_first_waits
    log = []
    in_loop do
      task = Async do
        log << :begun
        turns
        log << :goes_on
      end
      log << :caller
      task.wait
    end

    assert_equal %i[begun caller goes_on], log
  end

  def test_sync_returns_the_value_and_raises_the_error
    in_loop do
      assert_equal 3, Sync { |task| task.async { turns && 2 }.wait + 1 }
      error = assert_raises(RuntimeError) { Sync { turns && raise("in sync") } }
      assert_equal "in sync", error.message
    end
  end

  def test_a_failing_task_ends_no_other_task
    in_loop do
      failing = Async { |task| turns && task.async(finished: false) { raise "alone" } && :parent }

      assert_equal :parent, failing.wait
    end
  end

  def test_tasks_nest_and_their_children_outlive_them
    in_loop do
      child = nil
      parent = Async do |task|
        child = task.async { |inner| [inner.parent.equal?(task), inner.reactor.equal?(task.reactor), turns] }
      end

      assert_predicate parent, :completed?
      assert_equal [true, true], child.wait.first(2)
    end
  end

  def test_cancelling_ends_the_children_too_and_is_seen_at_once
    ended = []
    in_loop do
      parent = Async do |task|
        task.async { sleep_until_cancelled { ended << :child } }
        sleep_until_cancelled { ended << :parent }
      end
      parent.cancel

      assert_predicate parent, :cancelled?
      assert_nil parent.wait
    end

    assert_equal %i[child parent], ended.sort
  end

  def test_raise_in_another_fiber_keeps_the_cause_and_the_place
    cause = RuntimeError.new("why")
    found = nil
    Heddle.run do
      task = Async do
        sleep
      rescue IndexError => e
        found = e
      end
      Fiber.scheduler.raise(task.fiber, IndexError, "meant", cause:)
    end

    assert_equal ["meant", cause], [found.message, found.cause]
    assert_match(/#{__method__}/, found.backtrace.join)
    refute_match(/with_cause/, found.backtrace.join)
  end

  def test_forked_child_has_none_of_the_parents_tasks
    reader, writer = IO.pipe
    in_loop do
      parents = Async { sleep }
      Process.wait(fork { writer.puts(Fiber.scheduler.children.inspect) || exit!(0) })
      parents.cancel
    end

    assert_equal "nil\n", reader.gets
  end

  def test_cancelling_has_a_cause
    cause = RuntimeError.new("why")
    found = nil
    in_loop do
      task = Async do
        sleep
      rescue Async::Cancel => e
        found = e.cause
        raise
      end
      task.cancel(cause:)
    end

    assert_same cause, found
  end

  def test_cancelling_can_be_deferred
    log = []
    in_loop do
      gate = Async::Notification.new
      task = Async do |current|
        current.defer_cancel do
          gate.wait
          log << :complete
        end
        log << :never
      end
      task.cancel
      gate.signal
      task.wait

      assert_predicate task, :cancelled?
    end

    assert_equal [:complete], log
  end

  def test_a_task_cancels_itself_and_its_own_parent
    in_loop do
      parent = Async do |task|
        task.async { task.cancel }
        sleep
      end

      assert_nil parent.wait
      assert_predicate Async(&:cancel), :cancelled?
    end
  end

  def test_a_semaphore_limits_the_tasks_inside
    most = running = 0
    in_loop do
      semaphore = Async::Semaphore.new(3)
      values = Array.new(10) do |number|
        semaphore.async do
          most = [most, running += 1].max
          turns(3)
          running -= 1
          number
        end
      end.map(&:wait)

      assert_equal [*0..9], values
      semaphore.acquire { semaphore.limit = 4 }
    end

    assert_equal 3, most
  end

  def test_a_barrier_waits_for_all_and_stops_all
    in_loop do
      barrier = Async::Barrier.new
      values = []
      3.times { |number| barrier.async { turns && values << number } }
      barrier.wait

      assert_equal [0, 1, 2], values.sort
      stuck = Array.new(2) { barrier.async { sleep } }
      barrier.stop
      assert(stuck.all?(&:cancelled?))
    end
  end

  def test_a_timeout_raises_at_the_next_wait
    in_loop do
      Sync do |task|
        assert_raises(Async::TimeoutError) { task.with_timeout(0.001) { sleep } }
        error = assert_raises(ArgumentError) { task.with_timeout(0.001, ArgumentError, "late") { sleep } }
        assert_equal "late", error.message
        assert_equal 1, task.with_timeout(60) { turns && 1 }
      end
    end
  end

  def test_exception_of_a_timeout_that_cannot_be_made_raises_in_its_task
    strange = Class.new(StandardError) { def initialize(code:) = super(code) }
    in_loop do
      Async do |task|
        assert_raises(ArgumentError) { task.with_timeout(0.001, strange) { |_timeout| sleep 1 } }
      end.wait
    end
  end

  def test_a_timeout_can_be_extended_and_cancelled
    in_loop do
      Sync do |task|
        assert_raises(Async::TimeoutError) do
          task.with_timeout(60) do |timeout|
            assert_operator timeout.duration, :>, 50
            timeout.duration = 0.001
            sleep
          end
        end
        task.with_timeout(0.001) do |timeout|
          timeout.cancel!
          sleep 0.01
          assert_predicate timeout, :cancelled?
        end
      end
    end
  end

  def test_a_timeout_that_expires_during_a_computation_does_not_raise_after_the_block
    in_loop do
      Sync do |task|
        task.with_timeout(0.001) { |timeout| nil while timeout.duration > -0.01 }
        turns
      end
    end
  end

  def test_fiber_schedule_starts_a_child_of_the_task
    in_loop do
      Sync do |task|
        parent = nil
        fiber = Fiber.schedule { parent = Async::Task.current.parent }

        assert_same task, parent
        refute_predicate fiber, :alive?
      end
    end
  end

  def test_transient_tasks_end_with_the_loop
    ended = false
    in_loop { Async(transient: true) { sleep_until_cancelled { ended = turns } } }

    assert ended
  end

  def test_task_current_returns_a_task_in_every_fiber_of_the_loop
    in_loop do
      mine = Async::Task.current
      other = Heddle.async { Async::Task.current }.value

      assert_same mine, Async::Task.current
      refute_same mine, other
      assert_same mine, Async(&:parent).wait
    end
  end

  def test_a_loop_of_its_own_is_refused_where_one_runs
    in_loop do
      error = assert_raises(ThreadError) { Async::Reactor.new }

      assert_includes error.message, "Async { ... }"
    end
  end

  def test_reactors_in_other_threads_run_on_asyncs_own_scheduler
    in_loop do
      found = Thread.new { Sync { |task| task.reactor.class } }.value

      assert_equal Async::Reactor, found
    end
  end

  def test_the_load_follows_what_the_thread_computes
    in_loop do
      Sync do |task|
        assert_in_delta 0.0, task.reactor.load
        ended = now + 0.05
        nil until now > ended
        assert_operator task.reactor.load, :>, 0.001
        Async::Idler.new(1.0).async { :ran }.wait
      end
    end
  end

  # On a machine whose processors others use, a loop that never rests computes little.
  def test_the_load_of_a_loop_that_never_sleeps_is_full_whatever_it_computes
    in_loop do
      Sync do |task|
        task.reactor.load
        Fiber.blocking { sleep 0.3 }

        assert_operator task.reactor.load, :>, 0.2
        sleep 1
        busy = task.reactor.load
        sleep 1

        assert_operator task.reactor.load, :<, busy
      end
    end
  end

  def test_an_exception_outside_standard_error_ends_the_loop
    error = assert_raises(NotImplementedError) do
      in_loop { Async { turns && raise(NotImplementedError, "planted") } && sleep }
    end

    assert_equal "planted", error.message
  end

  private

  def sleep_until_cancelled
    sleep
  ensure
    yield
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
