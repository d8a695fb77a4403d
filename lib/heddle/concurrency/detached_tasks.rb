# frozen_string_literal: true

module Heddle
  module Concurrency
    # Holds the tasks that were started in a loop from outside every task, as with `Fiber.schedule`. No scope could
    # raise their failure. So the error leaves the fiber and is raised in the loop, like any fiber's error.
    class DetachedTasks < ScopeFrame
      attr_reader :scheduler

      def initialize(scheduler) # rubocop:disable Lint/MissingSuper -- there is no task around it
        @scheduler = scheduler
        @children = {}.compare_by_identity
      end

      def task = self

      def handle = nil

      def ended? = false

      def grace = DEFAULT_GRACE

      def child_ended(child)
        @children.delete(child)
        raise child.failure, cause: child.failure.cause if child.failed?
      end

      def to_s = "the loop"
    end
  end
end
