# frozen_string_literal: true

module Heddle
  module Concurrency
    # The root task: the task of {Heddle.run}'s block. It also runs the loop.
    class Root < TaskFrame
      # Sets the thread's scheduler, runs the block in its loop until every fiber has ended, and closes the loop.
      #
      # @return what the block returns
      def self.run(scheduler, name, grace, block)
        scheduler.deadlock_report ||= method(:deadlock_error)
        Fiber.set_scheduler(scheduler)
        begin
          new(scheduler, name, grace, block).run_loop
        ensure
          Fiber.set_scheduler(nil)
        end
      end

      # @return [DeadlockError] an error that lists the waiting tasks and the lines where they wait
      def self.deadlock_error(scheduler)
        DeadlockError.new("deadlock: every task waits, and nothing can wake any of " \
                          "them:\n#{TaskTree.new(Context.of(scheduler))}Look for the code that should release, push, " \
                          "signal or close.")
      end
      private_class_method :deadlock_error

      def initialize(scheduler, name, grace, block)
        super(nil, scheduler, name || "root", block)
        @grace = Arguments.limit("cancel_grace:", grace)
      end

      # Runs the loop until this task and every other fiber have ended.
      def run_loop
        Context.of(scheduler).root = self
        start
        begin
          # Unlike `run`, this does not raise the exceptions of fibers that are not tasks; they were printed already.
          scheduler.__send__(:run_fibers)
        rescue Exception => e
          Concurrency.attach_failures(e, [failure]) if failed? && !failure.equal?(e)
          raise
        end
        raise_failure if failed?
        @value
      end

      # Called when the root task ends in a forked child. Raises no failure, unlike the method of other tasks, because
      # {run_loop} raises it.
      #
      # @return [true] the child continues with the code after Heddle.run
      # @api private
      def end_in_child = true

      private

      # If the root task has failed, cancels the fibers that it does not wait for.
      def settle
        super
        Context.of(scheduler).cancel_unawaited if failed?
      end
    end
  end
end
