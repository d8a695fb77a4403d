# frozen_string_literal: true

module Heddle
  module Async
    # Measures the load of a loop for `Async::Idler`: the share of the last second in which the loop did not sleep. Time
    # in which the loop waits for a processor counts as busy. Each call of {#value} measures the time since the previous
    # call. The time before the first call counts as idle.
    class Load
      # Approximate seconds that the load covers.
      WINDOW = 1.0

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        @scheduler = scheduler
        @busy = 0.0 # busy seconds in the window
        @clock = @asleep = nil
      end

      # @return [Float] 0.0 to 1.0; 0.0 at the first call
      def value
        clock = MonotonicClock.now
        asleep = @scheduler.statistics.fetch(:asleep) / 1e9
        add(clock - @clock, asleep - @asleep) if @clock
        @clock = clock
        @asleep = asleep
        (@busy / WINDOW).clamp(0.0, 1.0)
      end

      private

      def add(total, asleep)
        @busy = (@busy + total - asleep) * WINDOW / (WINDOW + total)
      end
    end
  end
end
