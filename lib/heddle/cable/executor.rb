# frozen_string_literal: true

module Heddle
  module Cable
    # Runs the blocks that adapters and periodic timers of Action Cable post. It needs no thread: a posted block never
    # waits, because connections put the work into their own queues.
    class Executor
      # Calls a block at an interval until it is shut down.
      class Timer
        # @param timers [Concurrency::Timers]
        # @param interval [Numeric] seconds
        def initialize(timers, interval, &)
          @timer = timers.every(interval.to_f, self, &)
        end

        # @api private
        def post(timer) = timer.call

        # @return [void]
        def shutdown = @timer.stop
      end

      # @return [void]
      def post(task = nil, &block) = (task || block).call

      # @param interval [Numeric] seconds
      # @return [#shutdown]
      def timer(interval, &block)
        scheduler = Fiber.current_scheduler
        return Timer.new(Concurrency::Context.of(scheduler).timers, interval, &block) if scheduler.is_a?(Scheduler)

        Concurrent::TimerTask.new(execution_interval: interval, &block).tap(&:execute)
      end

      # @return [void]
      def shutdown = nil
    end
  end
end
