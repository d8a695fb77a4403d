# frozen_string_literal: true

module Heddle
  module Concurrency
    # Implements {Heddle.every}: calls the block at multiples of the interval since the start, so that the times don't
    # drift. Skips a call that is due while the block still runs.
    class Every
      include MonotonicClock

      def initialize(interval)
        @interval = Arguments.interval(interval)
        @start = now
        @tick = 0
      end

      def each
        yield wait while true # rubocop:disable Style/InfiniteLoop -- `loop` would rescue the block's StopIteration
      end

      private

      # Waits until the next call is due.
      #
      # @return [Integer] the call's number, counted in intervals since the start
      def wait
        @tick = [@tick + 1, ((now - @start) / @interval).ceil].max
        rest = @start + (@tick * @interval) - now
        sleep(rest) if rest.positive?
        @tick
      end
    end
  end
end
