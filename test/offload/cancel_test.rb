# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/offloaded"
require "support/feeding"
require "etc"
require "timeout"

# An exception raised in a fiber ends its native call early. It propagates only when the call has ended, because the
# call uses the fiber's stack.
class OffloadCancelTest < Minitest::Test
  include Offloaded
  include Feeding

  LONG = 60

  def test_cancelling_a_task_ends_its_call
    in_loop do
      task = Heddle.async { NativeCalls.meet(2) }
      until_inside 1
      task.cancel
      task.wait

      assert_predicate task, :cancelled?
      assert_equal 0, NativeCalls.inside
      assert_operator NativeCalls.cancelled, :>=, 1
    end
  end

  def test_a_system_call_is_cut_short_by_a_signal
    took = seconds do
      in_loop { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.02) { NativeCalls.sleep_for(LONG) } } }
    end

    assert_operator took, :<, LONG / 2
  end

  # Ruby >= 3.4 lets any thread make this call; it asks the loop's thread whether to wait by the scheduler.
  def test_a_time_limit_ends_copy_stream_while_it_waits
    in_loop do
      reader, writer = IO.pipe
      5.times do
        feeding(reader, writer) do
          assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.1) { IO.copy_stream(reader, File::NULL) } }
        end
      end
    end
  end

  # The first signal may come just before the system call that it is to interrupt.
  def test_the_unblocking_function_is_called_until_the_call_ends
    took = seconds do
      in_loop { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.02) { NativeCalls.doze(LONG) } } }
    end

    assert_operator took, :<, LONG
  end

  # Those that compute are limited to the cores: what waits for one has not begun, and never does.
  def test_a_call_that_has_not_begun_is_taken_back
    in_loop do
      3.times { NativeCalls.spin(0.002) }
      assert_equal :computes, known(:spin)[:class]
      begun = NativeCalls.spun + Etc.nprocessors
      busy = Array.new(Etc.nprocessors) { Heddle.async { NativeCalls.spin(LONG) } }
      until_true { NativeCalls.spun == begun }
      queued = Heddle.async { NativeCalls.spin(LONG) }
      until_true { Heddle::Offload.threads[:queued] == 1 }
      queued.cancel
      queued.wait

      assert_equal [begun, 0], [NativeCalls.spun, Heddle::Offload.threads[:queued]]
      busy.each(&:cancel).each(&:wait)
    end
  end

  # As at the end of the process, when Ruby kills every thread.
  def test_an_offload_thread_that_is_killed_ends_its_call_and_others_continue
    in_loop do
      task = Heddle.async { NativeCalls.meet(2) }
      until_inside 1
      threads = Thread.list.select { |thread| thread.name == "heddle offload" }
      threads.each(&:kill)

      assert_equal :cancelled, task.value
      assert(threads.all? { |thread| thread.join(LIMIT) })
      assert_equal [5, true], NativeCalls.set_errno(5)
    end
  end

  def test_a_call_gets_another_thread_if_its_own_was_killed_before_it_began
    output = offloading(<<~RUBY)
      module Killing
        def start_thread
          super
          return if defined?(@killed)

          @killed = Thread.list.find { |thread| thread.name == "heddle offload" }.kill
        end
      end
      Heddle::Offload::Switch.singleton_class.prepend(Killing)
      p Heddle.run { Heddle.timeout(#{LIMIT}) { NativeCalls.set_errno(5) } }
    RUBY

    assert_equal "[5, true]\n", output
  end

  def test_the_timeout_of_the_standard_library_ends_a_call
    in_loop do
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { NativeCalls.sleep_for(LONG) } }
      assert_raises(Timeout::Error) { Timeout.timeout(0.02) { Timeout.timeout(LONG) { NativeCalls.sleep_for(LONG) } } }
    end
  end

  def test_an_exception_from_another_fiber_ends_a_call
    raised = nil
    in_loop do
      fiber = Fiber.schedule do
        NativeCalls.meet(2)
      rescue IndexError => e
        raised = e.message
      end
      until_inside 1
      fiber.raise(IndexError, "from outside")
      until_true { raised }
    end

    assert_equal "from outside", raised
    assert_equal 0, NativeCalls.inside
  end

  def test_a_killed_fiber_ends_its_call
    ended = false
    in_loop do
      fiber = Fiber.schedule do
        NativeCalls.meet(2)
      ensure
        ended = true
      end
      until_inside 1
      fiber.kill
      until_true { ended }
    end

    assert_equal 0, NativeCalls.inside
  end

  def test_a_killed_thread_ends_the_calls_of_its_loop
    thread = Thread.new { in_loop { Heddle.map(1..3) { NativeCalls.meet(5) } } }
    until_true { NativeCalls.inside == 3 }
    thread.kill

    assert thread.join(LIMIT)
    assert_equal 0, NativeCalls.inside
  end

  # It can't be told to end, so what was raised waits for it.
  def test_a_call_that_cant_be_cut_short_is_waited_for
    in_loop do
      started = ended = nil
      task = Heddle.async do
        started = now
        NativeCalls.stubborn(1)
      ensure
        ended = now
      end
      until_true { Heddle::Offload.threads[:running] == 1 }
      task.cancel
      task.wait

      assert_predicate task, :cancelled?
      assert_operator ended - started, :>=, 1
    end
  end

  # rb_thread_call_without_gvl2 promises to return.
  def test_a_call_that_promises_to_return_does_and_the_exception_comes_at_the_next_wait
    events = []
    in_loop do
      task = Heddle.async do
        events << NativeCalls.meet2(2)
        events << :returned
        sleep 0
        events << :not_reached
      end
      until_inside 1
      task.cancel
      task.wait
    end

    assert_equal %i[cancelled returned], events
  end

  # As in Ruby: rb_thread_call_without_gvl2 neither runs its function then, nor raises.
  def test_a_call_that_promises_to_return_does_so_without_running_where_something_is_to_be_raised
    events = []
    in_loop do
      task = Heddle.async do
        events << NativeCalls.meet2(2)
        events << NativeCalls.meet2(1)
        sleep 0
        events << :not_reached
      end
      until_inside 1
      task.cancel
      task.wait
    end

    assert_equal [:cancelled, false], events
  end

  def test_a_pending_interrupt_is_raised_where_the_library_checks_for_interrupts
    events = []
    in_loop do
      task = Heddle.async do
        events << NativeCalls.meet2(2)
        events << NativeCalls.meet2_until_run(1)
      end
      until_inside 1
      task.cancel
      task.wait

      assert_predicate task, :cancelled?
    end

    assert_equal [:cancelled], events
  end

  # It may write to a pipe, or count. A signal is sent again: it may have come just before the system call.
  def test_the_librarys_own_unblocking_function_is_called_once
    in_loop do
      task = Heddle.async { NativeCalls.ignore_unblocking(1) }
      until_true { Heddle::Offload.threads[:running] == 1 }
      task.cancel
      task.wait
    end

    assert_equal 1, NativeCalls.cancelled
  end

  def test_the_fiber_continues_after_an_error
    in_loop do
      50.times do |i|
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.0005 * (i % 4)) { NativeCalls.meet(2) } }
        assert_equal [5, true], NativeCalls.set_errno(5)
      end
    end

    assert_equal 0, NativeCalls.inside
  end

  def test_errors_at_any_moment_are_raised_only_in_their_own_call
    results = in_loop do
      Array.new(300) do |i|
        Heddle.async do
          Heddle.timeout((i % 3).zero? ? 0.00001 * i : LONG) { NativeCalls.set_errno(i % 100) }
        rescue Heddle::TimeoutError
          nil
        end
      end.map(&:value)
    end

    results.each_with_index do |result, i|
      assert_equal [i % 100, true], result if result
      assert result, "call #{i}" unless (i % 3).zero?
    end
  end

  # A callback runs while its call is told to end, too: the function relies on it.
  def test_a_call_is_cancelled_in_its_callback
    events = []
    in_loop do
      task = Heddle.async do
        NativeCalls.call_back(2) do
          events << :callback
          sleep
        ensure
          events << :left
        end
        events << :not_reached
      end
      until_true { events == %i[callback] }
      task.cancel
      task.wait
    end

    assert_equal %i[callback left], events
  end
end
