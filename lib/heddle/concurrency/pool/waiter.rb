# frozen_string_literal: true

module Heddle
  class Pool
    # A task that waits for a resource.
    #
    # @api private
    class Waiter
      # @return [Slot, Object, nil] the slot, or the permission, that it got
      attr_reader :item

      # @return [Fiber]
      attr_reader :fiber

      # @return [Thread::Backtrace::Location, nil] the line that asked
      attr_reader :place

      # @return [Exception, nil] the error with which its wait ends
      attr_reader :error

      # @return [Concurrency::Context] of its loop
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

      # Waits until it is served, refused, or the time is over. The pool removes it from its list.
      #
      # @param timeout [Numeric, nil] seconds
      def wait(timeout = nil)
        Concurrency.park_while(@scheduler, timeout) { !@given && !@refused }
      end

      # @return [Boolean] was it given something?
      def given? = @given

      # Ends the wait: the task gets this item.
      def give(item)
        @given = true
        @item = item
        @scheduler.unpark(@fiber)
      end

      # Ends the wait: the task gets nothing.
      def refuse
        @refused = true
        @scheduler.unpark(@fiber)
      end

      # Ends the wait with an error.
      def fail(error)
        @error = error
        refuse
      end

      # Ends a wait in another library's pool with an error.
      def interrupt(error)
        @error = error
        @scheduler.interrupt(@fiber, error)
      end

      # @param task [Task, nil]
      # @return [Boolean] does the task around the given one wait for it?
      def self.nested?(task)
        scope = task&.parent
        !scope.nil? && !scope.background_child?(task) && scope.task.is_a?(Concurrency::TaskFrame)
      end

      # @return [Boolean] does a task around the waiter's own wait for it?
      def nested? = Waiter.nested?(@task)

      # Does the waiter's fiber hold a resource, or a task that can't continue before the waiter's task has ended?
      #
      # @param holders [#include?] fibers that hold resources
      def inside_holder?(holders)
        return true if holders.include?(@fiber)

        each_around { |owner| return true if holders.include?(owner.fiber) }
        false
      end

      # Is the slot released only after this waiter has been served? So it is when the waiter's own fiber has the slot,
      # or a task that can't continue before the waiter's task has ended.
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

      # The tasks around its own, from the inside, each with its scope and the task in that scope.
      def each_around
        child = @task
        while Waiter.nested?(child)
          scope = child.parent
          owner = scope.task
          yield owner, scope, child
          child = owner
        end
      end

      # A scope that was opened after the slot was taken ends before the slot is returned.
      def inside?(scope, frame)
        until (scope = scope.outer).nil?
          return true if scope.equal?(frame)
        end
        false
      end
    end
  end
end
