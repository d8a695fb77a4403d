# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "support/preempted"
require "timeout"

# What makes a fiber that computes give way, and where it is not interrupted.
class PreemptionBoundsTest < Minitest::Test
  include Preempted

  # -- with nothing else to do than to continue the fiber that computes ----------------------------------------------

  def test_an_event_alone_reaches_its_fiber
    flag = false
    reader, writer = IO.pipe
    scheduled do
      Fiber.schedule { flag = reader.readbyte }
      Thread.new { writer.write("x") }
      nil until flag
    end

    assert flag
  end

  def test_another_thread_alone_reaches_a_fiber
    flag = false
    queue = Thread::Queue.new
    scheduled do
      Fiber.schedule { flag = queue.pop }
      Thread.new { queue << true }
      nil until flag
    end

    assert flag
  end

  def test_a_fiber_continues_after_it_started_one_that_computes_endlessly
    flag = false
    scheduled do
      Fiber.schedule { nil until flag }
      flag = true
    end

    assert flag
  end

  # -- where no fiber is interrupted -----------------------------------------------------------------------------------

  { "Fiber.blocking" => ->(block) { Fiber.blocking { block.call } },
    "a_fiber_that_blocks" => ->(block) { Fiber.new(blocking: true, &block).resume } }.each do |name, call|
    define_method("test_#{name}_is_not_left".tr(".", "_")) do
      order = []
      scheduled do
        ended = false
        Fiber.schedule do
          until ended
            sleep 0
            order << :other
          end
        end
        call.call(lambda do
          order << :began
          compute(SLICE * 20)
          order << :computed
        end)
        ended = true
      end

      assert_includes order.each_cons(2), %i[began computed]
    end
  end

  def test_a_loop_in_another_ractor_is_left_alone
    program = <<~RUBY
      require "heddle"
      Heddle.enable :preempt, slice: 0.002
      ractor = Ractor.new do
        order = []
        Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule do
            Fiber.schedule { sleep 0; order << :other }
            ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.05
            nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ended
            order << :computed
          end
        end.join
        order
      end
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    output, status = ruby(program, flags: ["-W0"])

    assert_predicate status, :success?, output
    assert_equal "[:computed, :other]\n", output
  end

  # Ruby wakes the fibers of a list one by one, and each of them may leave the list when it runs. A wake-up of a fiber
  # that does not wait takes the longer the more of them are kept.
  def test_the_hook_that_wakes_a_fiber_is_not_left
    left = []
    scheduled do |scheduler|
      waker = Fiber.current
      woken = false
      Fiber.schedule do
        until woken
          sleep 0
          left |= waker.backtrace.first(1)
        end
      end
      Array.new(5000) { Fiber.new { nil } }.each { |fiber| scheduler.unblock(nil, fiber) }
      woken = true
    end

    assert_empty left.grep(/unblock/)
  end

  # -- what else Ruby does at such a point ----------------------------------------------------------------------------

  # A call in C during which both the watch asks and the collector finds something to finalize, so that Ruby has both to
  # do as it returns: the one must not keep the other from being done until this fiber is back.
  def test_due_finalizers_run_before_a_fiber_is_preempted
    finalized = 0
    text = "x" * 300_000
    seen = []
    scheduled do
      done = false
      Fiber.schedule do
        until done
          sleep 0
          seen << finalized
        end
      end
      until_true_within(LIMIT) do
        finalized = 0
        seen.clear
        GC.disable
        100.times { ObjectSpace.define_finalizer(Object.new, proc { finalized += 1 }) }
        GC.enable
        text.chars
        seen.first&.positive?
      end
      done = true
    ensure
      GC.enable
    end

    assert_operator seen.first, :>, 0
  end

  # There Ruby raises nothing, and what was raised meanwhile when the finalizers have ended.
  def test_a_timeout_that_passes_in_a_finalizer_is_raised_in_its_own_fiber_only
    unwound = []
    finalized = false
    scheduled do
      Fiber.schedule { sleep 0 until finalized }
      Timeout.timeout(0.01, ArgumentError) do
        10.times { ObjectSpace.define_finalizer(Object.new, proc { finalized ||= compute(0.1).nil? }) }
        GC.start
        sleep
      end
    rescue ArgumentError
      unwound << :own
    end

    assert finalized
    assert_equal %i[own], unwound
  end

  # -- what a mask keeps back -----------------------------------------------------------------------------------------

  # In Ruby a mask is the thread's, and so holds for every fiber as long as one is within it.
  # Beside the block: what that other fiber is struck by when it lets everything in again.
  # @param wait [#call] how long its mask lasts
  def strayed_into(wait)
    strayed = nil
    other = Fiber.schedule do
      Thread.handle_interrupt(Exception => :never) { wait.call }
      compute(SLICE * 5)
    rescue ArgumentError => e
      strayed = e
    end
    yield
    until_true { !other.alive? }
    strayed
  end

  def test_a_timeout_deferred_by_another_fibers_mask_is_raised_in_no_other_fiber
    reached = []
    scheduled do
      over = Thread::Queue.new
      reached << strayed_into(-> { over.pop }) do
        Timeout.timeout(0.01, ArgumentError) { compute(0.05) }
        compute(SLICE * 5)
        over << true
      end
      sleep 0.001
      reached << :end
    end

    assert_equal [nil, :end], reached
  end

  def test_a_timeout_deferred_by_another_fibers_mask_is_raised_when_the_mask_ends
    struck = false
    strayed = scheduled do
      strayed_into(-> { sleep 0.05 }) do
        Timeout.timeout(0.01, ArgumentError) { compute(LIMIT / 2) }
      rescue ArgumentError
        struck = true
      end
    end

    assert struck
    assert_nil strayed
  end

  def test_a_deferred_timeout_is_not_raised_in_a_fiber_that_is_started
    struck = []
    strayed = scheduled do
      over = Thread::Queue.new
      strayed_into(-> { over.pop }) do
        Timeout.timeout(0.01, ArgumentError) do
          compute(0.05)
          Fiber.schedule do
            Thread.handle_interrupt(Exception => :immediate) { Thread.pass }
          rescue ArgumentError
            struck << :started
          end
          sleep 0
        end
      rescue ArgumentError
        struck << :own
      ensure
        over << true
      end
    end

    assert_equal %i[own], struck
    assert_nil strayed
  end

  def test_a_fiber_whose_timeout_is_deferred_is_still_preempted
    flag = false
    struck = false
    scheduled do
      Fiber.schedule do
        sleep 0.05
        flag = true
      end
      Timeout.timeout(0.01, ArgumentError) do
        Thread.handle_interrupt(ArgumentError => :never) { nil until flag }
      end
    rescue ArgumentError
      struck = true
    end

    assert struck
  end

  # -- the end of a program -------------------------------------------------------------------------------------------

  # That is where many a library for tests runs them.
  def test_handlers_of_the_programs_end_have_it_too_whenever_they_were_set
    # Its program forks with several threads: ASan's allocator may be locked by another one, and stays so in the child.
    skip "AddressSanitizer can hang in a child that is forked beside other threads" if ENV["HEDDLE_SANITIZED"]

    output, status = ruby(<<~RUBY)
      def preempted
        flag = false
        Heddle.run do
          Heddle.async { sleep 0.01; flag = true }
          ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
          nil until flag || Process.clock_gettime(Process::CLOCK_MONOTONIC) > ended
          flag
        end
      end
      at_exit { puts "last \#{preempted}" }
      at_exit { puts "before \#{Thread.new { preempted }.value}, \#{Process.wait(fork { exit!(preempted) }) && $?.success?}" }
      require "heddle"
      Heddle.enable :preempt, slice: 0.002
      at_exit { puts "first \#{preempted}" }
    RUBY

    assert_equal "first true\nbefore true, true\nlast true\n", output
    assert_predicate status, :success?
  end

  private

  def until_true_within(seconds)
    deadline = now + seconds
    nil until yield || now > deadline
  end
end
