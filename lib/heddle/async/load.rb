# frozen_string_literal: true

module Heddle
  module Async
    # How busy the calling thread was of late, which `Async::Idler` asks: its processor time by the clock's, over about
    # a second. Measured from one question to the next, so that it costs nothing while no caller asks; the second before
    # the first question counts as idle.
    class Load
      # Seconds that count.
      WINDOW = 1.0

      def initialize
        @busy = 0.0 # seconds of the window
        @clock = @cpu = nil
      end

      # @return [Float] 0.0 to 1.0; 0.0 at the first question
      def value
        clock = MonotonicClock.now
        cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
        add(clock - @clock, cpu - @cpu) if @clock
        @clock = clock
        @cpu = cpu
        (@busy / WINDOW).clamp(0.0, 1.0)
      end

      private

      def add(total, busy)
        @busy = (@busy + busy) * WINDOW / (WINDOW + total)
      end
    end
  end
end
