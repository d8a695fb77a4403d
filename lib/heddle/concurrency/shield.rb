# frozen_string_literal: true

module Heddle
  module Concurrency
    # The scope of {Heddle.shield}. If a scope around the shield is cancelled, the cancellation is deferred until the
    # shield has ended.
    class Shield < ScopeFrame
      # Raises a pending exception before the block begins.
      def run
        pending = task.scheduler.uninterrupt(task.fiber)
        raise pending if pending

        super
      end

      def to_s = "the shield in #{task}"

      # @api private
      def shields? = true

      protected

      # Delivers a deferred cancellation: the task's next wait raises Cancelled.
      def leave(surfaced)
        super
        @outer.origin&.deliver
      end
    end
  end
end
