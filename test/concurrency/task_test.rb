# frozen_string_literal: true

require_relative "support/loop_helpers"
require_relative "../support/fiber_of"

class TaskTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_begins_in_a_later_turn_and_runs_beside_its_parent
    log = []
    in_loop do
      task = Heddle.async { log << :child }
      log << :parent
      assert_equal :ready, task.state
      task.wait
      log << :after
    end

    assert_equal %i[parent child after], log
  end

  def test_value_is_what_the_block_returned
    assert_equal 42, in_loop { Heddle.async { sleep(0) && 42 }.value }
  end

  def test_task_has_one_scope_of_which_its_children_are_part
    in_loop do
      task = Heddle.async { Heddle::Task.current.scope.async(name: "inner") { forever } }
      turns
      child = task.children.first

      assert_equal ["inner", [child]], [child.name, task.scope.children]
      assert_same task, child.parent.task
      assert_same task.scope, child.parent
      refute_kind_of Heddle::Scope, task
      child.cancel
    end
  end

  def test_wait_returns_the_task_and_value_can_be_asked_for_again
    in_loop do
      task = Heddle.async { :done }
      assert_same task, task.wait
      assert_equal %i[done done], [task.value, task.value]
      assert_predicate task, :ended?
      assert_equal :finished, task.state
    end
  end

  def test_many_may_wait_for_one
    values = in_loop do
      task = Heddle.async { turns && :shared }
      Heddle.map(1..3) { task.value }
    end

    assert_equal %i[shared shared shared], values
  end

  def test_wait_gives_up_after_its_timeout_and_the_task_continues
    in_loop do
      task = Heddle.async { forever && :late }
      assert_nil task.wait(timeout: 0.005)
      assert_equal :waiting, task.state
      Fiber.scheduler.unpark(fiber_of(task))
      assert_equal :late, task.value
    end
  end

  def test_failure_is_raised_where_it_is_waited_for
    error = assert_raises(ArgumentError) { in_loop { Heddle.async { raise ArgumentError, "bad" }.wait } }

    assert_equal "bad", error.message
  end

  def test_cancelled_task_has_no_value
    in_loop do
      task = Heddle.async(name: "victim") { forever }
      turns
      assert task.cancel
      refute task.cancel, "the second time it says that it was cancelled before"
      assert_same task, task.wait
      assert_equal :cancelled, task.state
      error = assert_raises(Heddle::TaskCancelledError) { task.value }
      assert_match(/victim/, error.message)
    end
  end

  def test_task_that_is_cancelled_before_it_began_never_runs
    ran = false
    in_loop do
      task = Heddle.async { ran = true }
      task.cancel
      task.wait
      assert_predicate task, :cancelled?
    end

    refute ran
  end

  def test_task_whose_fiber_is_killed_before_it_began_is_cancelled_alone
    begun = false
    task = nil
    result = Heddle.run do
      task = Heddle.async { begun = true }
      fiber_of(task).kill
      task.wait
      :result
    end

    assert_equal :result, result
    assert_equal :cancelled, task.state
    refute begun
  end

  def test_task_whose_fiber_is_killed_while_it_waits_is_cancelled
    in_loop do
      task = Heddle.async { forever }
      turns
      fiber_of(task).kill

      assert_same task, task.wait
      assert_equal :cancelled, task.state
      assert_raises(Heddle::TaskCancelledError) { task.value }
    end
  end

  { "running_task" => ->(&child) { Heddle.async(&child) && sleep },
    "task_that_waits_for_its_children" => ->(&child) { Heddle.async(&child) },
    "running_scope" => ->(&child) { Heddle.scope { |scope| scope.async(&child) && sleep } },
    "scope_that_waits_for_its_children" => ->(&child) { Heddle.scope { |scope| scope.async(&child) } } }
    .each do |name, body|
    define_method("test_fiber_kill_cancels_and_awaits_the_children_of_a_#{name}") do
      log = []
      in_loop do
        task = Heddle.async do
          body.call do
            Heddle.async(background: true) { forever }
            forever
          ensure
            turns
            log << :cleaned
          end
        ensure
          log << :left
        end
        turns
        fiber_of(task).kill

        assert_same task, task.wait
        assert_equal :cancelled, task.state
      end

      assert_equal %i[cleaned left], log.sort
    end
  end

  def test_can_be_asked_about_after_its_end
    in_loop do
      task = Heddle.async { Heddle.async { forever } && :value }
      turns
      assert_equal 1, task.children.size
      task.cancel
      task.wait
      assert_empty task.children
      assert_empty task.backtrace
      refute task.cancel
    end
  end

  def test_has_a_name_or_the_place_of_its_block
    in_loop do
      assert_equal "mine", Heddle.async(name: "mine") {}.name
      assert_equal "task_test.rb:#{__LINE__}", Heddle.async {}.name
      assert_match(/Heddle::Task "mine" ready/, Heddle.async(name: "mine") {}.inspect)
    end
  end

  def test_backtrace_says_where_it_waits
    in_loop do
      task = Heddle.async { forever }
      turns
      assert_equal :waiting, task.state
      assert(task.backtrace.any? { |line| line.include?("#{__FILE__}:#{__LINE__ - 3}") })
      task.cancel
    end
  end

  def test_current_is_the_task_that_runs
    in_loop do
      task = Heddle.async { [Heddle::Task.current, Heddle::Task.current.state, Enumerator.new { |y| y << Heddle::Task.current }.next] }

      assert_equal [task, :running, task], task.value
    end
    assert_nil Heddle::Task.current
  end

  def test_cannot_wait_for_itself
    in_loop do
      error = assert_raises(ThreadError) { Heddle::Task.current.wait }
      assert_match(/can't wait for itself/, error.message)
    end
  end

  def test_cannot_be_cancelled_or_waited_for_from_another_thread
    in_loop do
      task = Heddle.async { forever }
      turns
      messages = Thread.new do
        [assert_raises(ThreadError) { task.cancel }.message, assert_raises(ThreadError) { task.wait }.message]
      end.value
      assert_equal(2, messages.grep(/Heddle::Promise/).size)
      task.cancel
    end
  end

  def test_ends_only_after_its_own_children
    log = []
    in_loop do
      task = Heddle.async do
        Heddle.async do
          turns
          log << :grandchild
        end
        :value
      end
      assert_equal :value, task.value
      log << :child
    end

    assert_equal %i[grandchild child], log
  end

  def test_inherits_a_copy_of_the_fiber_storage
    Fiber[:request] = "outer"
    in_loop do
      assert_equal "outer", Fiber[:request]
      Heddle.async { Fiber[:request] = "inner" }.wait
      assert_equal "outer", Fiber[:request]
    end
  ensure
    Fiber[:request] = nil
  end

  def test_async_needs_a_block
    assert_raises(ArgumentError) { in_loop { Heddle.async } }
  end
end
