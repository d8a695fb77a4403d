# frozen_string_literal: true

module Heddle
  class Pool
    # A task that waits for a resource.
    #
    # @api private
    class Waiter
      # @return [Slot, Object, nil] the slot, or the permission to make a resource, that the task got
      attr_reader :item

      # @return [Fiber] the waiting fiber
      attr_reader :fiber

      # @return [Thread::Backtrace::Location, nil] the line that requested a resource
      attr_reader :place

      # @return [Exception, nil] the error to raise at the end of the wait
      attr_reader :error

      # @return [Concurrency::Context] the loop's context
      attr_reader :context

      def initialize(place)
        @scheduler = Concurrency.scheduler!("Heddle::Pool#acquire")
        @fiber = Fiber.current
        @context = Concurrency::Context.of(@scheduler)
        @task = @context.task
        @item = @error = nil
        @given = @refused = false
        @place = place
      end

      # Waits until the task gets an item, is refused, or the timeout has passed. If the wait ends without an item, the
      # pool must remove this object from its list of waiters.
      #
      # @param timeout [Numeric, nil] seconds
      def wait(timeout = nil)
        Concurrency.park_while(@scheduler, timeout) { !@given && !@refused }
      end

      # @return [Boolean] whether the task got an item
      def given? = @given

      # Ends the wait: the task gets this item.
      def give(item)
        @given = true
        @item = item
        @scheduler.unpark(@fiber)
      end

      # Ends the wait without an item.
      def refuse
        @refused = true
        @scheduler.unpark(@fiber)
      end

      # Ends the wait with an error.
      def fail(error)
        @error = error
        refuse
      end

      # Raises an error in the fiber, which waits in another library's pool.
      def interrupt(error)
        @error = error
        @scheduler.interrupt(@fiber, error)
      end

      # @param task [Task, nil]
      # @return [Boolean] whether this task runs in a scope of another task, and the scope waits for it
      def self.nested?(task)
        scope = task&.parent
        !scope.nil? && !scope.background_child?(task) && scope.task.is_a?(Concurrency::TaskFrame)
      end

      # @return [Boolean] whether the waiter's task runs in a scope of another task, and the scope waits for it
      def nested? = Waiter.nested?(@task)

      # Does the waiter's fiber, or a task that waits for the end of the waiter's task, have a resource?
      #
      # @param holders [#include?] fibers that have resources
      def inside_holder?(holders)
        return true if holders.include?(@fiber)

        each_around { |owner| return true if holders.include?(owner.fiber) }
        false
      end

      # Can the slot be released only after this waiter has got a resource? This is true if the slot belongs to the
      # waiter's fiber, or to a task that waits for the end of the waiter's task.
      #
      # @param slot [Slot]
      def blocks?(slot)
        return true if slot.fiber.equal?(@fiber)
        return false unless slot.block && slot.frame

        holder = slot.frame.task
        each_around do |owner, scope, child|
          return inside?(scope, slot.frame) || child.awaited_by?(slot.fiber) if owner.equal?(holder)
        end
        false
      end

      private

      # Yields the tasks around the waiter's task, the innermost first. With each task, yields its scope that waits for
      # the inner task, and that inner task.
      def each_around
        child = @task
        while Waiter.nested?(child)
          scope = child.parent
          owner = scope.task
          yield owner, scope, child
          child = owner
        end
      end

      # Was the scope opened after the slot was acquired? If so, the scope ends before the slot is released.
      def inside?(scope, frame)
        until (scope = scope.outer).nil?
          return true if scope.equal?(frame)
        end
        false
      end
    end
  end
end
