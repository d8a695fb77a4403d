# frozen_string_literal: true

module Heddle
  module Concurrency
    # The scope of {Heddle.supervise}. A task that fails with a StandardError does not cancel the other tasks. Any other
    # exception, such as SystemExit, SignalException or NoMemoryError, cancels them, and the scope raises it.
    class Supervisor < ScopeFrame
      # @param on_failure [#call, nil] called with the task and its error; nil: the event `task_failed` reports the
      #   error, unless a fiber waits for the failed task
      def initialize(task, on_failure, grace = nil)
        super(task, grace)
        @on_failure = Arguments.callable("on_failure:", on_failure)
      end

      private

      def forgiven?(child)
        error = child.failure
        return false unless error.is_a?(StandardError)

        if @on_failure then @on_failure.call(child.handle, error)
        elsif !child.awaited? then report(child, error)
        end
        true
      rescue Exception => e
        # This method runs while the child ends. If it raised the exception of `on_failure`, the scope would not learn
        # that the child has ended, and would wait forever.
        failed(e)
        true
      end

      def report(child, error)
        Events.report(:task_failed, task: child, error: ErrorText.full(error))
      end
    end
  end
end
