# frozen_string_literal: true

module Heddle
  class Pool
    # Counts how many of a pool's resources each fiber has. With these counts, the pool need not look at every resource
    # to check whether a waiting task is nested in a task that has a resource. Thousands of tasks may wait for a hundred
    # connections.
    #
    # @api private
    class Holders
      def initialize
        @counts = Hash.new(0).compare_by_identity
      end

      # @param fiber [Fiber]
      def include?(fiber) = @counts.key?(fiber)

      # @param slot [Slot] a slot that was acquired
      def add(slot)
        @counts[slot.fiber] += 1
        @counts[slot.task_fiber] += 1 if slot.task_fiber
      end

      # @param slot [Slot] a slot that was released
      def remove(slot)
        decrement(slot.fiber)
        decrement(slot.task_fiber) if slot.task_fiber
      end

      private

      def decrement(fiber)
        left = @counts[fiber] - 1
        left.zero? ? @counts.delete(fiber) : @counts[fiber] = left
      end
    end
  end
end
