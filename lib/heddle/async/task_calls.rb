# frozen_string_literal: true

require "heddle/async/job"

module Heddle
  module Async
    # Prepended to `Async::Task`. In a thread with Heddle's loop, the task's fiber belongs to the loop.
    module TaskCalls
      # @api private
      # @return [Job, nil] nil: the task does not run in a loop of Heddle
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

      # Runs the task's block, and then sets the task's state as async does.
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

    # Overrides `Async::Task.current`. A fiber of Heddle's loop that async has not started gets an implicit task.
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
