# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Sends a request over a connection of its origin, and reads the response. A {Carrier} knows the protocol's
      # version.
      #
      # @api private
      class Exchange
        # The number of kept connections found closed after which a new connection is opened.
        STALE_CONNECTIONS = 3
        private_constant :STALE_CONNECTIONS

        # @param request [Request]
        # @param limits [TimeLimits]
        # @param deadline [Float, nil] of everything together, in seconds of CLOCK_MONOTONIC
        def initialize(request, limits, deadline)
          @request = request
          @origin = request.origin
          @limits = limits
          @deadline = deadline
          @retries = 0
        end

        # Sends the request. Afterwards the connection is this exchange's until {#finish}.
        # @return [H1::ReceivedResponse, H2::ReceivedResponse]
        # @raise [Error]
        def head
          connection = @origin.acquire(@limits, @deadline, fresh: @retries.positive?)
          began = MonotonicClock.now
          @carrier = connection.carrier(@request, @limits, @deadline)
          head = @carrier.head(@retries < STALE_CONNECTIONS)
          @origin.count_time(:answer_seconds, began)
          head
        rescue Repetition::RepeatError
          finish
          @retries += 1
          retry
        end

        # @return [String] the whole body
        def read_all(limit) = @carrier.read_all(limit)

        # @return [String, nil] the next piece of the body; nil: it is complete
        # @raise [IOError] outside of the block of {Client#stream}
        def read_piece
          raise IOError, "the body can be read only inside the block of stream" unless @carrier

          @carrier.read_piece
        end

        # @return [Array<String>, nil] fields behind the body: name in lower case, value, name, value
        def trailers = @carrier&.trailers

        # Releases the connection for other requests, or closes it if it can't be reused. Idempotent.
        # @return [void]
        def finish
          return unless (carrier = @carrier)

          @carrier = nil
          carrier.finish
        end
      end
    end
  end
end
