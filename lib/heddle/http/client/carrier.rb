# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # A carrier sends one request on one connection and receives the response. Each version of HTTP has a subclass.
      #
      # @api private
      class Carrier
        include Repetition

        # @param connection [Connection, SharedConnection]
        # @param request [Request]
        # @param limits [TimeLimits]
        # @param deadline [Float, nil] for the whole request, in seconds of CLOCK_MONOTONIC
        def initialize(connection, request, limits, deadline)
          @connection = connection
          @request = request
          @origin = request.origin
          @limits = limits
          @deadline = deadline
        end

        private

        def too_large(limit)
          BodyTooLargeError.new("the body of #{place} is larger than #{limit} bytes (`body_limit`)")
        end

        def place = "#{@origin}#{@request.target}"

        def timed_out(phase, what)
          phase = TotalTimeoutError if @deadline && MonotonicClock.now >= @deadline
          phase.new("#{@origin} #{what} in time")
        end
      end
    end
  end
end
