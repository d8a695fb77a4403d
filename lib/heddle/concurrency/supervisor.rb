# frozen_string_literal: true

module Heddle
  module Concurrency
    # The scope of {Heddle.supervise}. A failed task does not cancel the other tasks. But an exception that is not a
    # StandardError, such as SystemExit, SignalException or NoMemoryError, ends the scope.
    class Supervisor < ScopeFrame
      # @param on_failure [#call, nil] called with the task and its error; nil: the event `task_failed` reports the
      #   error, unless another task waits for the failed one
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
        # The ending task must not raise this exception, because the scope would then wait forever.
        failed(e)
        true
      end

      def report(child, error)
        Events.report(:task_failed, task: child, error: ErrorText.full(error))
      end
    end
  end
end
