# frozen_string_literal: true

module Heddle
  class Pool
    # One resource of a pool, and the task that uses it. Heddle also has slots for the connections in the pools of
    # Active Record and Sequel ({Databases::Checkouts}).
    #
    # @api private
    class Slot
      # @return the resource that the pool's block returned, or the database connection
      attr_reader :resource

      # @return [Float, nil] when the resource is replaced because of its age, by CLOCK_MONOTONIC; infinity: never. nil
      #   for a database connection
      attr_reader :retire_at

      # @return [Float, nil] when the resource was last acquired or released, by CLOCK_MONOTONIC; nil: never
      attr_accessor :since

      # @return [Fiber, nil] the fiber that uses the resource
      attr_reader :fiber

      # @return [Concurrency::Frame, nil] the innermost scope or task of that fiber when it acquired the resource
      attr_reader :frame

      # @return [Fiber, nil] the fiber of the task, if it differs from `fiber`: the block of an Enumerator has a fiber
      #   of its own
      attr_reader :task_fiber

      # @return [Thread::Backtrace::Location, String, nil] the line that acquired the resource; a String for a database
      #   connection
      attr_accessor :place

      # @return [Boolean] whether the resource is released at the end of a block ({Pool#with})
      attr_accessor :block

      # @return [Boolean] whether it was already reported that the fiber does not use the resource
      attr_accessor :reported

      # @return [Boolean] whether the fiber did not use the resource at the last check
      attr_accessor :unused

      def initialize(resource, retire_at)
        @resource = resource
        @retire_at = retire_at
        vacate(nil)
      end

      # Records that the calling fiber uses the resource.
      def occupy(now, scheduler)
        @since = now
        @fiber = Fiber.current
        task = (Concurrency::Context.of(scheduler).task if scheduler.is_a?(Scheduler))
        return self unless task

        @frame = task.innermost
        @task_fiber = task.fiber unless task.fiber.equal?(@fiber)
        self
      end

      # Records that the given fiber uses the resource. Does not record the fiber's task or scope.
      #
      # @param fiber [Fiber]
      # @return [self]
      def occupied_by(fiber)
        @fiber = fiber
        self
      end

      # Short, because resources may be large.
      def inspect = "#<#{self.class} #{@resource.class}>"

      # Records that no fiber uses the resource any more.
      def vacate(now)
        @since = now
        @fiber = @task_fiber = @frame = @place = nil
        @block = @reported = @unused = false
      end
    end
  end
end
