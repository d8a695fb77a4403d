# frozen_string_literal: true

require "time"

module Heddle
  module HTTP
    class Client
      # Decides whether the client sends a request again because the caller has asked for it (`retries:`): after a
      # response with one of {STATUSES}, after a failed connection attempt, or when the connection was lost before the
      # response. A request that is not idempotent is repeated only if the connection attempt failed, because then no
      # byte of the request was sent.
      #
      # The longest pause doubles with each attempt, up to {LONGEST}; the actual pause is random (full jitter).
      # Retry-After is respected. The client does not retry if the pause would be longer than {LONGEST_RETRY_AFTER} or
      # than the time left of `total`.
      #
      # @api private
      class RequestedRetries
        # Seconds: the maximum of the first pause, the maximum of later pauses, and the longest Retry-After that is
        # respected.
        PAUSE = 0.25
        LONGEST = 10
        LONGEST_RETRY_AFTER = 60
        # Statuses of an overloaded server, or of a proxy that can't reach a server.
        STATUSES = [429, 502, 503, 504].freeze
        # Errors of a connection attempt: no byte of the request was sent.
        UNSENT = [ConnectError, ConnectTimeoutError, TLSTimeoutError].freeze
        # Errors that another attempt can't solve, or after which the server might process the request twice.
        FINAL = [TLSError, PrivateAddressError, OutcomeUnknownError].freeze
        private_constant :UNSENT, :FINAL

        # @param field [String, nil] Retry-After: a number or a date (RFC 9110, 10.2.3)
        # @return [Numeric] seconds from now; 0 if the field is absent or invalid
        def self.parse_retry_after(field)
          return 0 unless field
          return field.to_i if field.match?(/\A\d{1,9}\z/)

          [Time.httpdate(field) - Time.now, 0].max
        rescue ArgumentError
          0
        end

        # @return [Float, nil] the pause in seconds before the request is sent again
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
        # @return [H1::ReceivedResponse, H2::ReceivedResponse, nil] nil: send the request again, after {#pause}
        # @raise [Error] if the request is not to be sent again
        def head(request, exchange)
          exchange.head
        rescue *UNSENT, ConnectionLostError => e
          raise if FINAL.any? { |final| e.is_a?(final) }
          raise unless again?(request, 0, unsent: UNSENT.any? { |unsent| e.is_a?(unsent) })

          nil
        end

        # @param head [H1::ReceivedResponse, H2::ReceivedResponse]
        # @return [Boolean] whether to send the request again, after {#pause}
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
