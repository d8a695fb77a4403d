# frozen_string_literal: true

module Heddle
  class Pool
    # One resource of a pool, and the task that has it.
    #
    # @api private
    class Slot
      # @return what the pool's block made
      attr_reader :resource

      # @return [Float] when it is replaced because of its age; infinite: never
      attr_reader :retire_at

      # @return [Float] when it was last acquired or released
      attr_accessor :since

      # @return [Fiber, nil] the fiber that has it
      attr_reader :fiber

      # @return [Concurrency::Frame, nil] the frame that ran in that fiber when it got the resource
      attr_reader :frame

      # @return [Fiber, nil] the fiber of the task that took it, if another fiber took it: the block of an
      #   Enumerator has a fiber of its own
      attr_reader :task_fiber

      # @return [Thread::Backtrace::Location, nil] the line that asked for it
      attr_accessor :place

      # @return [Boolean] is it released at the end of a block?
      attr_accessor :block

      # @return [Boolean] was it reported already that its fiber waits for something else?
      attr_accessor :reported

      # @return [Boolean] did its fiber wait for something else at the last check?
      attr_accessor :unused

      def initialize(resource, retire_at)
        @resource = resource
        @retire_at = retire_at
        vacate(nil)
      end

      # Records that the calling fiber has it.
      def occupy(now, scheduler)
        @since = now
        @fiber = Fiber.current
        task = (Concurrency::Context.of(scheduler).task if scheduler.is_a?(Scheduler))
        return self unless task

        @frame = task.innermost
        @task_fiber = task.fiber unless task.fiber.equal?(@fiber)
        self
      end

      # Records that this fiber has it, and nothing else about the fiber.
      #
      # @param fiber [Fiber]
      # @return [self]
      def occupied_by(fiber)
        @fiber = fiber
        self
      end

      # Short, because resources may be large.
      def inspect = "#<#{self.class} #{@resource.class}>"

      # Records that no fiber has the resource any more.
      def vacate(now)
        @since = now
        @fiber = @task_fiber = @frame = @place = nil
        @block = @reported = @unused = false
      end
    end
  end
end
