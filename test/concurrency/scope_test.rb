# frozen_string_literal: true

require_relative "support/loop_helpers"

class ScopeTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_does_not_end_before_its_children
    log = []
    in_loop do
      value = Heddle.scope do
        Heddle.async do
          turns
          log << :child
        end
        log << :block
        :value
      end
      log << :after
      assert_equal :value, value
    end

    assert_equal %i[block child after], log
  end

  def test_first_failure_cancels_the_siblings_and_is_raised_in_the_parent
    log = []
    error = assert_raises(KeyError) do
      in_loop do
        Heddle.scope do
          Heddle.async { logging_cancel(log, :sibling) { forever } }
          Heddle.async { turns && raise(KeyError, "first") }
          logging_cancel(log, :parent) { forever }
        end
      end
    end

    assert_equal "first", error.message
    assert_equal %i[parent sibling], log.sort
  end

  def test_error_of_the_block_cancels_the_children
    log = []
    assert_raises(KeyError) do
      in_loop do
        Heddle.scope do
          Heddle.async { logging_cancel(log, :child) { forever } }
          turns
          raise KeyError
        end
      end
    end

    assert_equal [:child], log
  end

  def test_failure_that_was_rescued_at_the_wait_is_raised_at_the_end_of_the_scope
    in_loop do
      seen = nil
      error = assert_raises(KeyError) do
        Heddle.scope do
          task = Heddle.async { raise KeyError, "lost?" }
          task.wait
        rescue Heddle::Cancelled
          seen = assert_raises(KeyError) { task.wait }
        end
      end
      assert_same seen, error
    end
  end

  def test_further_failures_are_attached_to_the_first
    error = assert_raises(KeyError) do
      in_loop do
        Heddle.async do
          forever
        ensure
          raise IOError, "while cleaning up"
        end
        turns
        raise KeyError, "first"
      end
    end

    assert_equal ["while cleaning up"], error.further_failures.map(&:message)
    assert_match(/first.*another task failed: while cleaning up \(IOError\) at/m, error.full_message(highlight: false))
  end

  def test_error_keeps_its_backtrace_and_cause
    error = assert_raises(KeyError) do
      in_loop do
        Heddle.async do
          Integer("x")
        rescue ArgumentError
          raise KeyError, "wrapped" # the line
        end
        forever
      end
    end

    assert_includes error.backtrace.first, "#{__FILE__}:#{__LINE__ - 6}"
    assert_instance_of ArgumentError, error.cause
  end

  def test_code_after_a_failed_scope_may_wait
    in_loop do
      assert_raises(KeyError) do
        Heddle.scope do
          Heddle.async { raise KeyError }
          forever
        end
      end
      turns
      assert_equal 1, Heddle.async { turns && 1 }.value
    end
  end

  def test_cancelling_without_a_wait_is_not_raised_later
    in_loop do
      assert_raises(KeyError) do
        Heddle.scope do |scope|
          Heddle.async { turns(2) && raise(KeyError) }
          Fiber.scheduler.yield until scope.cancelled?
        rescue Heddle::Cancelled
          # swallowed: the block runs to its end
        end
      end
      scope = nil
      Heddle.scope do |one|
        scope = one
        one.cancel # and no wait follows in the block
      end
      assert_predicate scope, :ended?
      turns
    end
  end

  def test_nested_scopes_unwind_to_the_one_that_failed
    log = []
    in_loop do
      Heddle.scope do
        assert_raises(KeyError) do
          Heddle.scope do |outer|
            Heddle.scope do
              Heddle.async { logging_cancel(log, :innermost) { forever } }
              outer.async { turns && raise(KeyError) }
              forever
            end
            log << :never
          end
        end
        log << :goes_on
        turns
      end
      log << :end
    end

    assert_equal %i[innermost goes_on end], log
  end

  def test_cancel_ends_the_block_and_the_children_without_an_error
    log = []
    value = in_loop do
      Heddle.scope do |scope|
        Heddle.async { logging_cancel(log, :child) { forever } }
        Heddle.async { turns && scope.cancel }
        forever
        :value
      end
    end

    assert_nil value
    assert_equal [:child], log
  end

  def test_background_tasks_do_not_keep_it_alive
    log = []
    in_loop do
      Heddle.scope do
        Heddle.async(background: true) { logging_cancel(log, :background) { forever } }
        Heddle.async { turns && log << :foreground }
      end
      log << :after
    end

    assert_equal %i[foreground background after], log
  end

  def test_scope_with_only_background_tasks_ends_at_once
    in_loop do
      Heddle.scope { Heddle.async(background: true) { forever } }
    end
  end

  def test_failure_of_a_background_task_is_not_lost
    assert_raises(KeyError) do
      in_loop do
        Heddle.async(background: true) { raise KeyError }
        forever
      end
    end
  end

  def test_children_started_while_it_waits_for_the_others_belong_to_it
    log = []
    in_loop do
      Heddle.scope do |scope|
        Heddle.async do
          turns
          scope.async { turns && log << :late }
        end
      end
      log << :after
    end

    assert_equal %i[late after], log
  end

  def test_no_task_can_be_started_in_an_ended_scope
    in_loop do
      scope = Heddle.scope(&:itself)
      assert_raises(Heddle::ScopeEndedError) { scope.async {} }
    end
  end

  def test_a_task_started_in_a_cancelled_scope_does_not_run
    in_loop do
      Heddle.scope do |scope|
        scope.cancel
        task = scope.async { flunk }
        turns
      ensure
        assert_predicate task, :cancelled?
      end
    end
  end

  def test_can_be_left_by_break_return_and_throw
    in_loop do
      log = []
      assert_equal 1, leave_by_return(log)
      assert_equal 2, (Heddle.scope do
        Heddle.async { turns && log << :break }
        break 2
      end)
      thrown = catch(:out) do
        Heddle.scope do
          Heddle.async { turns && log << :throw }
          throw :out, 3
        end
      end
      assert_equal 3, thrown
      assert_equal %i[return break throw], log
      frame = Heddle::Concurrency::TaskFrame.current

      assert_same frame, frame.innermost
    end
  end

  def test_belongs_to_a_loop
    error = assert_raises(Heddle::NoLoopError) { Heddle.scope {} }
    assert_match(/Heddle.run/, error.message)
  end

  def test_scope_of_an_enumerator_may_outlast_the_one_around_it
    in_loop do
      numbers = Enumerator.new { |y| Heddle.scope { (y << 1) && (y << 2) } }
      Heddle.scope { assert_equal 1, numbers.next }
      assert_equal 2, numbers.next
      assert_raises(StopIteration) { numbers.next }
      frame = Heddle::Concurrency::TaskFrame.current

      assert_same frame, frame.innermost
      assert_equal 3, Heddle.async { turns && 3 }.value
    end
  end

  def test_task_cannot_be_started_from_another_thread_and_the_scope_is_none_the_worse
    in_loop do
      Heddle.scope do |scope|
        Thread.new { assert_raises(ThreadError) { scope.async { flunk } } }.join
        assert_empty scope.children
      end
    end
  end

  def test_thousands_of_children
    sum = 0
    in_loop { 10_000.times { |i| Heddle.async { sum += i } } }

    assert_equal 49_995_000, sum
  end

  private

  def leave_by_return(log)
    Heddle.scope do
      Heddle.async { turns && log << :return }
      return 1
    end
  end

  def logging_cancel(log, name)
    yield
  rescue Heddle::Cancelled
    log << name
    raise
  end
end
