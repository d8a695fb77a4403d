# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # One request on one connection, from its first byte to the last of its response. Decides what may be sent again.
      #
      # @api private
      class Carrier
        # Raised when the connection was lost and the request may be sent again.
        class RepeatError < OwnError; end

        # @param connection [Connection, SharedConnection]
        # @param request [Request]
        # @param limits [TimeLimits]
        # @param deadline [Float, nil] of the whole request, in seconds of CLOCK_MONOTONIC
        def initialize(connection, request, limits, deadline)
          @connection = connection
          @request = request
          @origin = request.origin
          @limits = limits
          @deadline = deadline
        end

        private

        # @return [Error] for a lost request: its class says whether the server may have processed it
        def loss(untouched, why)
          subject = "#{@request.method} #{@origin}#{@request.target}"
          if untouched || @request.idempotent?
            ConnectionLostError.new("#{subject}: the connection was lost: #{why}")
          else
            OutcomeUnknownError.new("#{subject}: the connection was lost; the server may or may not have processed " \
                                    "it: #{why}")
          end
        end

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
