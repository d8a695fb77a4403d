# frozen_string_literal: true

module Heddle
  module Concurrency
    # The scope of {Heddle.shield}: a cancellation around it waits until it has ended.
    class Shield < ScopeFrame
      # A pending exception is raised before the block begins.
      def run
        pending = task.scheduler.uninterrupt(task.fiber)
        raise pending if pending

        super
      end

      def to_s = "the shield in #{task}"

      # @api private
      def shields? = true

      protected

      # A deferred exception is raised at the task's next wait.
      def leave(surfaced)
        super
        @outer.origin&.deliver
      end
    end
  end
end
