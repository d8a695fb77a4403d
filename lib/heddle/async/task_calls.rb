# frozen_string_literal: true

require "heddle/async/job"

module Heddle
  module Async
    # Changes `Async::Task` where Heddle's loop runs: the fiber of the task belongs to the loop.
    module TaskCalls
      # @api private
      # @return [Job, nil] nil: the task does not run in one of Heddle's loops
      attr_reader :job

      def initialize(parent = ::Async::Task.current?, **options, &block)
        @job = nil
        @named_by = block
        super(parent.is_a?(Scheduler) ? parent.async_root : parent, **options, &block)
      end

      private

      def schedule(&)
        scheduler = Fiber.scheduler
        return super unless scheduler.is_a?(Scheduler)

        block = @named_by
        @named_by = nil
        label = annotation
        work = -> { perform(label, &) }
        Job.start(self, scheduler, block, work)
      end

      # The states that async defines for the end of a task's block.
      def perform(label)
        @fiber = Fiber.current
        @fiber.annotate(label) if label
        @fiber.async_task = self
        @job = scheduler_job
        completed!(yield)
        nil
      rescue ::Async::Cancel, Cancelled => e
        cancelled!(e.cause || e)
      rescue StandardError => e
        failed!(e)
      rescue Exception => e
        failed!(e)
        raise
      ensure
        finish!
        @job = nil
      end

      def scheduler_job = Fiber.scheduler.current
    end

    # A fiber of Heddle's loop that async has not started becomes a task when it calls `Async::Task.current`.
    module CurrentTask
      def current
        task = Fiber.current.async_task
        return task if task

        scheduler = Fiber.current_scheduler
        fiber = scheduler.current_fiber if scheduler.is_a?(Scheduler)
        fiber ? ImplicitTask.of(scheduler.async_root, fiber) : super
      end
    end
  end
end
