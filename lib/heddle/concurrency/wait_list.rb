# frozen_string_literal: true

module Heddle
  module Concurrency
    # Fibers of one loop that wait to be woken, in the order of arrival, for example until a task ends or a semaphore
    # is free. Waking a fiber removes it from the list. So a fiber that stops waiting for another reason can check in
    # the list whether it was woken.
    class WaitList
      # @param what [String] the method that waits, for the error message
      def initialize(what)
        @what = what
        @scheduler = nil
        @waiting = {}.compare_by_identity
      end

      def empty? = @waiting.empty?

      def size = @waiting.size

      # @param fiber [Fiber]
      # @return [Boolean] whether that fiber is in the list
      def waiting?(fiber) = @waiting.key?(fiber)

      # Waits until another fiber wakes this one.
      #
      # @param timeout [Numeric, nil] maximum seconds to wait; nil: no limit
      # @return [Boolean] false: the timeout has passed
      # @yield if an exception or Fiber#kill interrupts this fiber after it was woken, so that the block can wake
      #   another fiber
      def wait(timeout = nil)
        scheduler = enter
        fiber = Fiber.current
        @waiting[fiber] = true
        Concurrency.park_while(scheduler, timeout) { @waiting.key?(fiber) }
        ended = true
        !@waiting.delete(fiber)
      ensure
        yield if fiber && !ended && !@waiting.delete(fiber) && block_given?
      end

      # Wakes the fiber that has waited longest.
      #
      # @return [Boolean] false: no fiber waits, or the loop of the waiting fibers is closed
      def wake
        fiber, = @waiting.shift
        return false if fiber.nil? || @scheduler.closed?

        @scheduler.unpark(fiber)
        true
      end

      # Wakes all fibers.
      # @return [Integer] number of fibers woken
      def wake_all
        count = 0
        count += 1 while wake
        count
      end

      private

      def enter
        scheduler = Concurrency.scheduler!(@what)
        # A loop may be closed before the clean-up of its cancelled fibers has ended. Then they are still in the list.
        if @waiting.empty? || @scheduler.closed?
          @waiting.clear
          @scheduler = scheduler
        elsif !@scheduler.equal?(scheduler)
          raise ThreadError, "tasks of another thread's loop already wait for this object: use a Heddle::Promise or " \
                             "a Thread::Queue between threads"
        end
        scheduler
      end
    end
  end
end
