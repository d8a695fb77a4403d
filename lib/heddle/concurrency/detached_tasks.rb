# frozen_string_literal: true

module Heddle
  module Concurrency
    # The scope of detached tasks, which are tasks that were started outside of every task while no root task runs, for
    # example in a loop without Heddle.run. No code waits for this scope, so a task's error leaves the task's fiber and
    # is handled like the error of any fiber.
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

      # Cancels the tasks that run now. Tasks that are started later are not affected.
      def cancel = children.map(&:cancel).any?

      def child_ended(child)
        @children.delete(child)
        raise child.failure, cause: child.failure.cause if child.failed?
      end

      def to_s = "the loop"
    end
  end
end
