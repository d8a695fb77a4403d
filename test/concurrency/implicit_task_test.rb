# frozen_string_literal: true

require_relative "support/loop_helpers"

# Everything works in fibers that were started by Ruby's own interface, too.
class ImplicitTaskTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_scopes_and_time_limits_work_in_a_plain_fiber
    log = []
    with_plain_scheduler do
      in_fiber do
        log << Heddle.scope { Heddle.async { turns && 1 }.value }
        log << Heddle.map([1, 2]) { |n| turns && n }
        log << Heddle.race([3, 4]) { |n| turns(n) && n }
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.002) { forever } }
        assert_raises(KeyError) do
          Heddle.scope do
            Heddle.async { raise KeyError }
            forever
          end
        end
        turns
        log << Heddle.run { :inline }
      end
    end

    assert_equal [1, [1, 2], 3, :inline], log
  end

  def test_cancelling_the_scope_of_the_loop_cancels_its_running_tasks
    cancelled = states = nil
    with_plain_scheduler do
      in_fiber do
        tasks = Array.new(2) { Heddle.async { forever } }
        turns
        cancelled = Array.new(2) { tasks.first.parent.cancel }
        tasks << Heddle.async { :later }
        states = tasks.each(&:wait).map(&:state)
      end
    end

    assert_equal [true, false], cancelled
    assert_equal %i[cancelled cancelled finished], states
  end

  def test_async_without_a_scope_belongs_to_the_loop
    log = []
    with_plain_scheduler do
      Fiber.schedule do
        Heddle.async { turns && log << :task }
        log << :fiber
      end
    end

    assert_equal %i[fiber task], log
  end

  def test_async_works_before_the_loop_runs
    log = []
    with_plain_scheduler { Heddle.async { log << Heddle.async { turns && :value }.value } }

    assert_equal [:value], log
  end

  def test_failure_of_a_task_without_a_scope_is_reported_like_that_of_a_fiber
    _, err = capture_io do
      assert_raises(KeyError) { with_plain_scheduler { Heddle.async { raise KeyError, "nobody's" } } }
    end

    assert_match(/nobody's \(KeyError\)/, err)
  end

  def test_run_makes_the_loop_of_a_scheduler_set_by_hand_run
    with_plain_scheduler { assert_equal 5, Heddle.run { turns && 5 } }
  end

  def test_a_fiber_is_not_a_task_any_more_when_its_scopes_are_closed
    with_plain_scheduler do |scheduler|
      in_fiber do
        assert_nil Heddle::Task.current
        Heddle.scope do
          assert_kind_of Heddle::Task, Heddle::Task.current
          Heddle.scope { turns }
          assert Heddle::Task.current
        end
        assert_nil Heddle::Task.current
        assert_empty Heddle::Concurrency::Context.of(scheduler).instance_variable_get(:@implicit_tasks)
      end
    end
  end

  def test_state_of_an_implicit_task_tells_whether_its_fiber_runs
    with_plain_scheduler do
      in_fiber do
        Heddle.scope do
          task = Heddle::Task.current

          assert_equal :running, task.state
          assert_equal :waiting, Heddle.async { task.state }.value
        end
      end
    end
  end

  def test_plain_fibers_run_in_heddle_run_and_it_waits_for_them
    log = []
    in_loop do
      Fiber.schedule do
        Heddle.async { turns && log << :task }
        turns
        log << :fiber
      end
      log << :block
    end

    assert_equal %i[block fiber task], log.sort
  end

  private

  # An error in a plain fiber is only reported: here it is the test's.
  def in_fiber(&block)
    Fiber.schedule do
      block.call
    rescue Exception => e
      @error = e
    end
  end

  def with_plain_scheduler
    Thread.new do
      scheduler = Heddle::Scheduler.new(selector: selector_under_test)
      Fiber.set_scheduler(scheduler)
      yield scheduler
      scheduler.run
    ensure
      Fiber.set_scheduler(nil)
    end.join
    raise @error if @error
  end
end
