# frozen_string_literal: true

module Heddle
  module Async
    # How busy the loop was lately, for `Async::Idler`: the share of about a second in which it did not sleep. Time in
    # which the loop waits for a processor counts as busy. Each call measures the time since the last call. The second
    # before the first call counts as idle.
    class Load
      # Seconds that the load covers, about.
      WINDOW = 1.0

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        @scheduler = scheduler
        @busy = 0.0 # seconds of the window
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
