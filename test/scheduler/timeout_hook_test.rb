# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "timeout"
require "heddle"

# R7, A6: Timeout.timeout raises where the fiber waits, and unwinds the right frame.
class TimeoutHookTest < Minitest::Test
  include Scheduled

  def test_a_timeout_ends_a_wait
    scheduled do
      started = now
      error = assert_raises(Timeout::Error) { Timeout.timeout(0.05) { sleep 10 } }

      assert_equal "execution expired", error.message
      assert_operator now - started, :<, 5
    end
  end

  def test_a_block_in_time_returns_its_value_and_is_given_the_seconds
    scheduled { assert_equal [:value, 10], Timeout.timeout(10) { |seconds| [:value, seconds] } }
  end

  def test_a_class_of_ones_own_is_raised_with_its_message
    scheduled do
      error = assert_raises(IndexError) { Timeout.timeout(0.01, IndexError, "too slow") { sleep } }

      assert_equal "too slow", error.message
    end
  end

  def test_no_limit_is_not_a_timeout
    scheduled do
      assert_equal 1, Timeout.timeout(nil) { 1 }
      assert_equal 1, Timeout.timeout(0) { 1 }
    end
  end

  def test_a_limit_that_never_comes_is_not_a_timeout
    scheduled do
      [Float::INFINITY, 1e300, 2**80, 2r**80, 1e18].each do |limit|
        assert_equal 1, Timeout.timeout(limit) { sleep(0) && 1 }
      end
    end
  end

  # What is left of a program's own time limit.
  def test_a_limit_that_has_passed_ends_the_first_wait
    scheduled do |scheduler|
      [-1, -0.5, -1r].each do |limit|
        assert_raises(KeyError) { scheduler.timeout_after(limit, KeyError) { sleep } }
      end
    end
  end

  def test_the_inner_of_two_ends_only_its_own_block
    scheduled do
      outcome = Timeout.timeout(10) do
        Timeout.timeout(0.01) { sleep }
      rescue Timeout::Error
        :inner
      end

      assert_equal :inner, outcome
    end
  end

  def test_an_inner_rescue_does_not_catch_the_outer_timeout
    scheduled do
      caught_inside = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.01) do
          Timeout.timeout(10) { sleep }
        rescue Timeout::Error
          caught_inside = true
        end
      end

      refute caught_inside
    end
  end

  def test_of_two_that_passed_the_outer_wins
    scheduled do
      reached = []
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.01) do
          begin
            Timeout.timeout(0.01, IndexError) { compute_for(0.03) && sleep }
          rescue IndexError
            reached << :inner
          end
          reached << :after_inner
        end
      end

      assert_empty reached
    end
  end

  def test_ensure_runs_and_may_wait
    scheduled do
      cleaned = false
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.01) do
          sleep
        ensure
          sleep 0.001
          cleaned = true
        end
      end

      assert cleaned
    end
  end

  def test_a_timeout_of_an_ended_block_is_never_raised
    scheduled do
      100.times { Timeout.timeout(0.002) { sleep 0.001 } rescue nil }
      sleep 0.01

      assert_equal 0, Fiber.scheduler.statistics[:timers]
    end
  end

  def test_a_timeout_is_not_raised_without_a_wait
    scheduled do
      assert(Timeout.timeout(0.001) { compute_for(0.01) })
    end
  end

  def test_a_timeout_is_raised_at_the_first_wait_after_computing
    scheduled do
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.001) do
          deadline = now + 0.01
          nil until now > deadline
          sleep 0
        end
      end
    end
  end

  def test_a_timeout_ends_waits_of_each_kind
    reader, writer = IO.pipe # a writer that is garbage ends what is read
    waits = {
      sleep: -> { sleep }, queue: -> { Queue.new.pop }, read: -> { reader.read }, select: -> { IO.select([reader]) },
      join: -> { Thread.new { Thread.stop }.join }, process: -> { Process.wait(spawn("sleep 10")) },
      nested: -> { Fiber.new { sleep }.resume }, enumerator: -> { Enumerator.new { sleep }.next }
    }
    waits.each do |name, wait|
      scheduled { assert_raises(Timeout::Error, name.to_s) { Timeout.timeout(0.01) { wait.call } } }
    end
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_timeout_block_can_be_left_by_break_throw_and_return
    scheduled do
      assert_equal(1, Timeout.timeout(10) { break 1 })
      assert_equal(2, catch(:done) { Timeout.timeout(10) { throw :done, 2 } })
      assert_equal 0, Fiber.scheduler.statistics[:timers]
    end
  end

  def test_many_timeouts_at_once_are_each_raised_once
    struck = 0
    scheduled do
      200.times do |i|
        Fiber.schedule do
          Timeout.timeout(0.001 + (i % 10 / 1000.0)) { sleep }
        rescue Timeout::Error
          struck += 1
        end
      end
    end

    assert_equal 200, struck
  end

  # As Thread.handle_interrupt delays what the thread of Ruby's Timeout raises.
  def test_a_mask_delays_a_timeout_to_its_end
    %w[Timeout::ExitException Exception Object].each do |name|
      scheduled do
        steps = []
        assert_raises(Timeout::Error, name) do
          Timeout.timeout(0.01) do
            Thread.handle_interrupt(Object.const_get(name) => :never) { steps << sleep_for(0.02) << sleep_for(0.02) }
            steps << :after
          end
        end
        assert_equal %i[slept slept], steps, name
      end
    end
  end

  def test_a_mask_of_the_class_that_a_timeout_names_delays_it
    scheduled do
      [Timeout::Error, IndexError].each do |named|
        slept = false
        assert_raises(named) do
          Timeout.timeout(0.01, named) do
            Thread.handle_interrupt(named => :never) { slept = sleep_for(0.02) }
          end
        end
        assert slept, "#{named} was not delayed"
      end
    end
  end

  def test_a_mask_within_a_mask_lets_a_timeout_through
    { on_blocking: %i[entered], immediate: [] }.each do |timing, expected|
      scheduled do
        steps = []
        assert_raises(Timeout::Error, timing) do
          Thread.handle_interrupt(Timeout::ExitException => :never) do
            Timeout.timeout(0.01) { masked_within(timing, steps) }
          end
        end
        assert_equal [:slept, *expected], steps, timing
      end
    end
  end

  def test_a_timeout_that_a_mask_delays_beyond_its_block_is_not_raised
    scheduled do
      slept = Thread.handle_interrupt(Timeout::ExitException => :never) { Timeout.timeout(0.01) { sleep_for(0.02) } }
      sleep 0.001

      assert_equal :slept, slept
    end
  end

  def test_a_mask_for_another_class_or_of_another_fiber_delays_nothing
    scheduled do
      Fiber.schedule { Thread.handle_interrupt(Exception => :never) { sleep 0.05 } }

      assert_raises(Timeout::Error) do
        Thread.handle_interrupt(IndexError => :never) { Timeout.timeout(0.01) { sleep } }
      end
    end
  end

  def test_the_closest_class_of_a_mask_counts
    scheduled do
      assert_raises(Timeout::Error) do
        Thread.handle_interrupt(Exception => :never, Timeout::ExitException => :immediate) do
          Timeout.timeout(0.01) { sleep }
        end
      end
    end
  end

  def test_a_mask_that_is_left_in_any_way_delays_nothing_after_it
    scheduled do
      assert_equal(:left, catch(:out) { Thread.handle_interrupt(Exception => :never) { throw :out, :left } })
      assert_raises(IndexError) { Thread.handle_interrupt(Exception => :never) { raise IndexError } }
      blocks = Array.new(2) { Enumerator.new { |out| Thread.handle_interrupt(Exception => :never) { out << 1 << 2 } } }
      [*blocks, *blocks].each(&:next)
      blocks.map { |block| assert_raises(StopIteration) { block.next } }
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { sleep } }
    end
  end

  def test_a_mask_in_an_enumerator_delays_nothing_beside_it
    scheduled do
      block = Enumerator.new { |out| Thread.handle_interrupt(Exception => :never) { out << 1 << 2 } }
      block.next

      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { sleep } }
      assert_equal 2, block.next
    end
  end

  def test_a_mask_delays_a_timeout_in_what_it_resumes
    scheduled do
      slept = Enumerator.new { |out| out << sleep_for(0.02) }
      assert_raises(Timeout::Error) do
        Timeout.timeout(0.01) do
          Thread.handle_interrupt(Exception => :never) { assert_equal :slept, slept.next }
          flunk "not raised at the end of the block"
        end
      end
    end
  end

  # Its stack has the record of the mask: with the fiber collected, the list of masks led into other fibers' stacks.
  def test_masks_of_abandoned_fibers_are_kept_until_their_task_ends
    scheduled do
      50.times { Enumerator.new { |out| Thread.handle_interrupt(Exception => :never) { out << 1 } }.next }
      2.times { GC.start }
      50.times { Fiber.new { Thread.handle_interrupt(IndexError => :never) { Fiber.yield } }.resume }

      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { sleep } }
    end
  end

  # trilogy has such blocks in methods that never wait, and rescues nothing there.
  def test_a_mask_that_has_delayed_nothing_raises_nothing
    steps = []
    scheduled do |scheduler|
      error = assert_raises(Timeout::Error) do
        Timeout.timeout(0.001) { compute_for(0.005) && note_masks(steps) && sleep }
      end
      scheduler.interrupt(Fiber.current, IndexError.new)
      note_masks(steps)

      assert_raises(IndexError) { sleep 0 }
      assert_equal "execution expired", error.message
    end
    assert_equal %i[masked masked], steps
  end

  def test_handle_interrupt_keeps_its_own_errors
    scheduled do
      assert_raises(ArgumentError) { Thread.handle_interrupt(Exception => :never) }
      assert_raises(ArgumentError) { Thread.handle_interrupt(Exception => :sometimes) { nil } }
      assert_raises(TypeError) { Thread.handle_interrupt(:never) { nil } }
    end
  end

  private

  # In one piece: a preempted fiber waits.
  def compute_for(seconds)
    to = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    Heddle.without_preemption { nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > to }
    true
  end

  def note_masks(steps)
    Thread.handle_interrupt(Exception => :never) do
      steps << Thread.handle_interrupt(Exception => :immediate) { :masked }
    end
  end

  def sleep_for(seconds)
    sleep seconds
    :slept
  end

  def masked_within(timing, steps)
    steps << sleep_for(0.02)
    Thread.handle_interrupt(Timeout::ExitException => timing) do
      steps << :entered
      sleep
    end
  end
end
