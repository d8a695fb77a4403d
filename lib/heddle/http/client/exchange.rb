# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Sends a request over a connection of its origin, and reads the response. The {Carrier} of each version of HTTP
      # does this on one connection.
      #
      # @api private
      class Exchange
        # How often a request whose connection was lost is sent again at most.
        MAX_REPETITIONS = 3
        private_constant :MAX_REPETITIONS

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

        # Sends the request. Afterwards the connection belongs to this exchange until {#finish}.
        # @return [H1::ReceivedResponse, H2::ReceivedResponse]
        # @raise [Error]
        def head
          connection = @origin.acquire(@limits, @deadline, fresh: @retries.positive?)
          began = MonotonicClock.now
          @carrier = connection.carrier(@request, @limits, @deadline)
          head = @carrier.head(@retries < MAX_REPETITIONS)
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
