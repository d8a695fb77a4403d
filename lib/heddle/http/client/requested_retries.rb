# frozen_string_literal: true

require "time"

module Heddle
  module HTTP
    class Client
      # Sends a request again if the user has asked for it (`retries:`): after a response with one of {STATUSES}, and
      # after a connection that failed to open or was lost before the response. A request that is not idempotent is
      # repeated only if no connection was opened, so that nothing of it was sent.
      #
      # The pauses double, up to {LONGEST}, and are different for each client (full jitter). Retry-After is obeyed. If
      # the pause would be longer than {LONGEST_RETRY_AFTER}, or than the rest of `total`, the response or error is
      # final.
      #
      # @api private
      class RequestedRetries
        # Seconds: the longest first pause, the longest of all, and the longest that a server may ask for.
        PAUSE = 0.25
        LONGEST = 10
        LONGEST_RETRY_AFTER = 60
        # Statuses of a server that is overloaded, or of a proxy that reaches no server.
        STATUSES = [429, 502, 503, 504].freeze
        UNSENT = [ConnectError, ConnectTimeoutError, TLSTimeoutError].freeze
        # Errors that another attempt does not solve, or after which the request might take effect twice.
        FINAL = [TLSError, PrivateAddressError, OutcomeUnknownError].freeze
        private_constant :UNSENT, :FINAL

        # @param field [String, nil] Retry-After: a number or a date (RFC 9110, 10.2.3)
        # @return [Numeric] seconds from now on; 0 where the field says nothing
        def self.parse_retry_after(field)
          return 0 unless field
          return field.to_i if field.match?(/\A\d{1,9}\z/)

          [Time.httpdate(field) - Time.now, 0].max
        rescue ArgumentError
          0
        end

        # @return [Float, nil] seconds of the pause before the request is sent again
        attr_reader :seconds

        # @param retries [Integer]
        # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
        # @param random [#rand]
        def initialize(retries, deadline, random: Random)
          @left = retries
          @deadline = deadline
          @random = random
          @longest = PAUSE
        end

        # @param exchange [Exchange]
        # @return [H1::ReceivedResponse, H2::ReceivedResponse, nil] nil: the request is to be sent again after {#pause}
        # @raise [Error] that is final
        def head(request, exchange)
          exchange.head
        rescue *UNSENT, ConnectionLostError => e
          raise if FINAL.any? { |final| e.is_a?(final) }
          raise unless again?(request, 0, unsent: UNSENT.any? { |unsent| e.is_a?(unsent) })

          nil
        end

        # @param head [H1::ReceivedResponse, H2::ReceivedResponse]
        # @return [Boolean] is the request to be sent again, after {#pause}?
        def after?(request, head)
          STATUSES.include?(head.status) &&
            again?(request, RequestedRetries.parse_retry_after(Fields.value(head.fields, "retry-after")))
        end

        # @return [void]
        def pause = sleep(@seconds)

        private

        def again?(request, least, unsent: false)
          return false unless @left.positive? && (unsent || request.idempotent?) && request.replayable?

          @seconds = [@random.rand * @longest, least].max
          return false if @seconds > LONGEST_RETRY_AFTER || (@deadline && @seconds > @deadline - MonotonicClock.now)

          @left -= 1
          @longest = [@longest * 2, LONGEST].min
          true
        end
      end
    end
  end
end
