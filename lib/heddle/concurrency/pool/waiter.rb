# frozen_string_literal: true

require "heddle/concurrency/taker"

module Heddle
  class Pool
    # A task that waits for a resource.
    class Waiter < Concurrency::Taker
      # @return [Thread::Backtrace::Location, nil] the line that asked
      attr_reader :place

      # @return [Exception, nil] why it gets nothing
      attr_reader :error

      def initialize(place)
        super("Heddle::Pool#acquire")
        @task = Concurrency::Context.of(@scheduler).task
        @place = place
      end

      # Ends its waiting with an error.
      def fail(error)
        @error = error
        refuse
      end

      # Is the slot given back only after this waiter has been served? Its own fiber has it, or a task that can't go on
      # before this one has ended.
      #
      # @param slot [Slot]
      def blocks?(slot)
        return true if slot.fiber.equal?(@fiber)
        return false unless slot.block && slot.frame && @task

        holder = slot.frame.task
        child = @task
        while (scope = child.parent) && !scope.background_child?(child)
          owner = scope.task
          return inside?(scope, slot.frame) || child.awaited_by?(slot.fiber) if owner.equal?(holder)
          break unless owner.is_a?(Task)

          child = owner
        end
        false
      end

      private

      # A scope that was opened after the slot was taken ends before the slot is given back.
      def inside?(scope, frame)
        until (scope = scope.outer).nil?
          return true if scope.equal?(frame)
        end
        false
      end
    end
  end
end
