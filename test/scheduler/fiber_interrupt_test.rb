# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "socket"
require "tempfile"
require "timeout"

# The hook fiber_interrupt, which Ruby >= 4.0 calls for IO#close. Here it is called directly, so on each Ruby.
class FiberInterruptTest < Minitest::Test
  include Scheduled

  # What Ruby >= 4.1 passes in place of a fiber: it stands for one call of the fiber.
  class Proxy < BasicObject
    def initialize(fiber) = @fiber = fiber
    def alive? = @fiber.alive?
    def raise(*) = @fiber.raise(*)
    def transfer = @fiber.transfer
  end

  WAITS = {
    sleep: ->(_io) { sleep },
    block: ->(_io) { Fiber.scheduler.block(:test) },
    queue_pop: ->(_io) { Thread::Queue.new.pop },
    wait_readable: lambda(&:wait_readable),
    wait_readable_with_time_limit: ->(io) { io.wait_readable(LIMIT) },
    read: ->(io) { io.read(9) },
    readpartial: ->(io) { io.readpartial(9) },
    gets_with_time_limit: ->(io) { io.tap { io.timeout = LIMIT }.gets },
    write: ->(io) { io.write("x" * 10_000_000) },
    select: ->(io) { IO.select([io]) },
    select_with_time_limit: ->(io) { IO.select([io], nil, nil, LIMIT) },
    wait_in_a_timeout: ->(io) { Timeout.timeout(LIMIT) { io.wait_readable } }
  }.freeze

  ORIGINS = {
    its_own_thread: ->(&call) { call.call },
    another_thread: ->(&call) { Thread.new(&call).value }
  }.freeze

  TARGETS = { fiber: :itself.to_proc, proxy: Proxy.method(:new) }.freeze

  WAITS.to_a.product(ORIGINS.to_a, TARGETS.to_a) do |(wait, waiting), (origin, from), (kind, target)|
    define_method(:"test_#{kind}_raises_in_#{wait}_from_#{origin}") do
      check_wait(from, target) { |io, noted| noted.call { waiting.call(io) } }
    end

    define_method(:"test_#{kind}_raises_in_#{wait}_of_an_enumerator_from_#{origin}") do
      check_wait(from, target) do |io, noted|
        Enumerator.new { |items| items << noted.call { waiting.call(io) } }.next
      end
    end
  end

  def check_wait(from, target)
    error = IndexError.new("now")
    raised = fiber = nil
    scheduled do |scheduler|
      io, peer = UNIXSocket.pair
      Fiber.schedule do
        yield io, lambda { |&wait|
          fiber = Fiber.current
          wait.call
        }
      rescue IndexError => e
        raised = e
      end
      3.times { scheduler.yield } # until it waits in the selector

      assert from.call { scheduler.fiber_interrupt(target.call(fiber), error) }
      until_true { sleep(0.001) && raised }

      assert_same error, raised
      assert_equal 0, scheduler.statistics[:armed]
      [io, peer].each(&:close)
    end
  end

  TARGETS.each do |kind, target|
    define_method(:"test_#{kind}_that_runs_raises_at_its_next_wait") do
      steps = []
      scheduled do |scheduler|
        own = Fiber.current
        thread = Thread.new { scheduler.fiber_interrupt(target.call(own), IndexError.new) }
        Thread.pass while thread.alive? # a join would be a wait
        steps << :goes_on
        begin
          sleep
        rescue IndexError
          steps << :interrupted
        end
        sleep 0.001
        steps << :waits_again
      end

      assert_equal %i[goes_on interrupted waits_again], steps
    end

    define_method(:"test_#{kind}_that_has_ended_is_left_alone") do
      scheduled do |scheduler|
        fiber = Fiber.schedule {}
        scheduler.fiber_interrupt(target.call(fiber), IndexError.new)
        Thread.new { scheduler.fiber_interrupt(target.call(fiber), IndexError.new) }.join
        sleep 0.001
      end
    end

    define_method(:"test_#{kind}_of_many_each_raises_and_the_others_wait_on") do
      raised = []
      scheduled do |scheduler|
        readers = Array.new(40) { IO.pipe }
        fibers = readers.map do |reader, _|
          Fiber.schedule do
            raised << reader.read(1)
          rescue IndexError => e
            raised << e.message
          end
        end
        3.times { scheduler.yield }
        Thread.new do
          struck = fibers.each_slice(2).map(&:first)
          struck.each { |fiber| scheduler.fiber_interrupt(target.call(fiber), IndexError.new("i")) }
        end.join
        readers.each { |pipe| pipe.last << "r" }
        until_true { sleep(0.001) && raised.size == 40 }
        readers.flatten.each(&:close)
      end

      assert_equal({ "i" => 20, "r" => 20 }, raised.tally)
    end
  end

  def test_a_proxy_whose_call_has_ended_is_not_raised_through
    scheduled do |scheduler|
      proxy = Object.new
      proxy.define_singleton_method(:alive?) { false }
      proxy.define_singleton_method(:raise) { |*| flunk }
      scheduler.fiber_interrupt(proxy, IOError.new)
      sleep 0.001
    end
  end

  def test_a_proxy_that_cannot_raise_does_not_keep_others_from_it
    raised = nil
    scheduled do |scheduler|
      fiber = Fiber.schedule do
        sleep
      rescue IndexError => e
        raised = e
      end
      unable = Object.new
      unable.define_singleton_method(:alive?) { true }
      unable.define_singleton_method(:raise) { |*| Kernel.raise(FiberError) }
      [unable, Proxy.new(fiber)].each { |proxy| scheduler.fiber_interrupt(proxy, IndexError.new) }
      until_true { sleep(0.001) && raised }
    end

    assert_instance_of IndexError, raised
  end

  # Ruby >= 4.0 hands each waiter of an IO the same object.
  def test_a_frozen_exception_is_raised_as_copies
    error = IOError.new("stream closed in another thread").freeze
    raised = []
    scheduled do |scheduler|
      fibers = Array.new(3) do
        Fiber.schedule do
          raise "a cause"
        rescue RuntimeError
          begin
            sleep
          rescue IOError => e
            raised << e
          end
        end
      end
      fibers.each { |fiber| scheduler.fiber_interrupt(fiber, error) }
      until_true { raised.size == 3 }
    end

    assert_equal 4, [error, *raised].uniq(&:object_id).size
    assert_nil error.backtrace
    raised.each { |e| assert_includes e.backtrace.join("\n"), __method__.to_s }
    assert_equal ["stream closed in another thread"], raised.map(&:message).uniq
  end

  # The call for which Ruby raises it may be over: the next wait is for something else.
  def test_the_exception_of_a_close_is_not_raised_at_a_later_wait
    scheduled do |scheduler|
      scheduler.fiber_interrupt(Fiber.current, IOError.new("stream closed in another thread").freeze)
      sleep 0.001
    end
  end

  def test_a_cancellation_comes_first_and_the_exception_belongs_to_the_wait_that_it_ends
    raised = []
    scheduled do |scheduler|
      reader, = IO.pipe
      fiber = Fiber.schedule do
        reader.wait_readable
      rescue Heddle::Cancelled, IOError => e
        raised << e.class
        sleep 0.001
        raised << :waited
      end
      scheduler.interrupt(fiber, Heddle::Cancelled.new)
      scheduler.fiber_interrupt(fiber, IOError.new)
      until_true { sleep(0.001) && raised.size == 2 }
    end

    assert_equal [Heddle::Cancelled, :waited], raised
  end

  def test_a_fiber_that_was_given_an_item_takes_it_and_raises_at_its_next_wait
    steps = []
    scheduled do |scheduler|
      queue = Thread::Queue.new
      fiber = Fiber.schedule do
        steps << queue.pop
        sleep
      rescue IndexError
        steps << :interrupted
      end
      queue << :item
      scheduler.fiber_interrupt(fiber, IndexError.new)
      until_true { sleep(0.001) && steps.size == 2 }
    end

    assert_equal %i[item interrupted], steps
  end

  # With io_uring the kernel writes into the buffer until it has reported the end of the cancelled read.
  def test_the_kernel_has_left_the_buffer_of_an_interrupted_read
    file = Tempfile.new("interrupted", "/var/tmp")
    file.write("a" * 4_000_000)
    file.fsync
    file.advise(:dontneed)
    outcome = nil
    read = +""
    scheduled do |scheduler|
      fiber = Fiber.schedule do
        outcome = file.pread(4_000_000, 0, read).size
      rescue IndexError => e
        outcome = e
        read = "b" * 4_000_000
      end
      waited = outcome.nil?
      scheduler.fiber_interrupt(fiber, IndexError.new)
      until_true { sleep(0.001) && outcome }
      waited &&= outcome.is_a?(IndexError) if Heddle.enabled.any? # it may have read all of it, and been preempted
      waited ? assert_instance_of(IndexError, outcome) : assert_equal(4_000_000, outcome)
      refute_includes read, "a" if waited
    end
  ensure
    file&.close!
  end

  def test_exceptions_survive_the_compaction_of_the_heap
    messages = []
    scheduled do |scheduler|
      fibers = Array.new(20) do
        Fiber.schedule do
          sleep
        rescue IndexError => e
          messages << e.message
        end
      end
      fibers.each_with_index do |fiber, i|
        scheduler.fiber_interrupt(i.even? ? fiber : Proxy.new(fiber), IndexError.new("no. #{i}"))
      end
      2.times { GC.compact }
      until_true { sleep(0.001) && messages.size == 20 }
    end

    assert_equal Array.new(20) { |i| "no. #{i}" }, messages.sort_by { |message| message[/\d+/].to_i }
  end

  def test_a_closed_scheduler_interrupts_nothing
    scheduler = Heddle::Scheduler.new
    scheduler.close

    refute scheduler.fiber_interrupt(Fiber.current, IOError.new)
    refute scheduler.fiber_interrupt(Proxy.new(Fiber.current), IOError.new)
  end

  def test_anything_but_an_exception_is_refused
    scheduled { |scheduler| assert_raises(TypeError) { scheduler.fiber_interrupt(Fiber.current, 1) } }
  end
end
