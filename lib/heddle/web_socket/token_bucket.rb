# frozen_string_literal: true

module Heddle
  module WebSocket
    # Limits how many messages a client may send: `rate` a second, and `burst` at once.
    #
    # @api private
    class TokenBucket
      include MonotonicClock

      # @param rate [Numeric] messages a second
      # @param burst [Numeric] that may come at once
      def initialize(rate, burst)
        @rate = rate
        @burst = burst
        @left = burst.to_f
        @counted = now
      end

      # @param cost [Numeric] how much the message counts
      # @return [Boolean] whether a message may come now; then it is counted
      def take?(cost = 1)
        time = now
        @left = [@left + ((time - @counted) * @rate), @burst].min
        @counted = time
        return false if @left < cost

        @left -= cost
        true
      end
    end
  end
end
