# frozen_string_literal: true

module Heddle
  module Async
    # How busy the calling thread was of late, which `Async::Idler` asks: its processor time by the clock's, over about
    # a second. Measured from one question to the next, so that it costs nothing while nobody asks.
    class Load
      # Seconds that count.
      WINDOW = 1.0

      def initialize
        @busy = @total = 0.0
        @clock = @cpu = nil
      end

      # @return [Float] 0.0 to 1.0; 0.0 at the first question
      def value
        clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
        add(clock - @clock, cpu - @cpu) if @clock
        @clock = clock
        @cpu = cpu
        @total.zero? ? 0.0 : (@busy / @total).clamp(0.0, 1.0)
      end

      private

      def add(total, busy)
        @total += total
        @busy += busy
        return unless @total > WINDOW

        @busy *= WINDOW / @total
        @total = WINDOW
      end
    end
  end
end
