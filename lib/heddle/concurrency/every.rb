# frozen_string_literal: true

module Heddle
  module Concurrency
    # Calls the block of {Heddle.every} at multiples of the interval since the start, so that the times don't drift. A
    # call that is due while the block still runs is skipped.
    class Every
      include MonotonicClock

      def initialize(interval)
        @interval = Seconds.interval(interval)
        @start = now
        @tick = 0
      end

      def each
        yield wait while true # rubocop:disable Style/InfiniteLoop -- `loop` swallows a StopIteration of the block
      end

      private

      # Waits until the next call is due.
      #
      # @return [Integer] its number
      def wait
        @tick = [@tick + 1, ((now - @start) / @interval).ceil].max
        rest = @start + (@tick * @interval) - now
        sleep(rest) if rest.positive?
        @tick
      end
    end
  end
end
