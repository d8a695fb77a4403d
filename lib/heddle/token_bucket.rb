# frozen_string_literal: true

module Heddle
  # Limits the number of a client's messages: `rate` per second, and `burst` at once.
  #
  # @api private
  class TokenBucket
    include MonotonicClock

    # @param rate [Numeric] messages per second
    # @param burst [Numeric] messages that may come at once
    def initialize(rate, burst)
      @rate = rate
      @burst = burst
      @left = burst.to_f
      @counted = now
    end

    # @param cost [Numeric] number of messages that this message counts as
    # @return [Boolean] whether the limit allows the message; if so, it is counted
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
