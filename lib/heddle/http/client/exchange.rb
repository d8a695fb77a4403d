# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # One request and its response. Acquires a connection of the origin, and sends the request by the connection's
      # {Carrier}. Acquires another connection when the request must be sent again.
      #
      # @api private
      class Exchange
        # Maximum number of times that a request is sent again because its connection was lost, or because the server
        # has refused it without processing it.
        MAX_REPETITIONS = 3
        private_constant :MAX_REPETITIONS

        # @param request [Request]
        # @param limits [TimeLimits]
        # @param deadline [Float, nil] for the request as a whole, in seconds of CLOCK_MONOTONIC
        def initialize(request, limits, deadline)
          @request = request
          @origin = request.origin
          @limits = limits
          @deadline = deadline
          @retries = 0
        end

        # Sends the request and receives the response's head. The exchange keeps the connection until {#finish}.
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
        # @raise [IOError] when called after the block of {Client#stream} has returned
        def read_piece
          raise IOError, "the body can be read only inside the block of stream" unless @carrier

          piece = @carrier.read_piece
          # Lets other fibers run, also if the server always has more to send.
          sleep(0) if piece && Fiber.current_scheduler
          return piece unless piece && @deadline && MonotonicClock.now >= @deadline

          # A carrier checks the deadline only where it waits. If the server always has more to send, it never waits.
          raise TotalTimeoutError, "#{@origin} did not send its whole response in time"
        end

        # @return [Array<String>, nil] the fields after the body: names (in lower case) and values, alternating
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
