# frozen_string_literal: true

module Heddle
  module Cable
    # Runs the blocks that adapters and periodic timers of Action Cable post. In a loop it needs no thread: a posted
    # block never waits, because connections put the work into their own queues. Outside of a loop, timers run on the
    # threads of concurrent-ruby.
    class Executor
      # @return [void]
      def post(task = nil, &block) = (task || block).call

      # @param interval [Numeric] seconds
      # @return [#shutdown]
      def timer(interval, &block)
        scheduler = Fiber.current_scheduler
        return Concurrent::TimerTask.new(execution_interval: interval, &block).tap(&:execute) unless
          scheduler.is_a?(Scheduler)

        Concurrency::Context.of(scheduler).timers.every(interval.to_f, self, &block)
      end

      # @return [void]
      def shutdown = nil
    end
  end
end
