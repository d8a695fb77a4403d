# frozen_string_literal: true

module Heddle
  module Cable
    # Runs what adapters and periodic timers of Action Cable post. It has no thread: a posted block never waits, because
    # connections put their work into a queue of their own.
    class Executor
      # Calls the block every so many seconds until it is shut down.
      class Timer
        # @param interval [Numeric]
        def initialize(interval, &block)
          @timer = Live::Dispatcher.current.every(interval.to_f, self, block)
        end

        # @api private
        def post(timer) = timer.call

        # The timer may be kept until its time: it keeps nothing of the connection.
        # @return [void]
        def shutdown = @timer.session = @timer.block = nil
      end

      # @return [void]
      def post(task = nil, &block) = (task || block).call

      # @param interval [Numeric] seconds
      # @return [#shutdown]
      def timer(interval, &block)
        return Timer.new(interval, &block) if Fiber.current_scheduler.is_a?(Scheduler)

        Concurrent::TimerTask.new(execution_interval: interval, &block).tap(&:execute)
      end

      # @return [void]
      def shutdown = nil
    end
  end
end
