# frozen_string_literal: true

require "heddle/net"

module Heddle
  module HTTP
    class Client
      # An HTTP/1.1 connection of an {Origin}. One request uses it at a time, in any loop or thread.
      #
      # @api private
      class Connection
        # The limits of a response's head and framing. A body's own limit is the client's.
        LIMITS = Limits.new(header_limit: Defaults::HEADER_LIMIT, header_count: Defaults::HEADER_COUNT,
                            body_limit: 1 << 50, chunk_overhead_limit: 1 << 50)
        private_constant :LIMITS

        # @return [Net::OutboundConnection]
        attr_reader :socket
        # @return [H1::ResponseReader]
        attr_reader :reader
        # @return [Integer] requests that it has carried
        attr_reader :uses
        # @return [Float] when it became idle, by CLOCK_MONOTONIC
        attr_accessor :idle_since

        def initialize(socket)
          @socket = socket
          @reader = H1::ResponseReader.new(socket, LIMITS)
          @uses = 0
        end

        # @return [Carrier]
        def carrier(request, limits, deadline) = H1Carrier.new(self, request, limits, deadline)

        # @param deadline [Float, nil] of the request, in seconds of CLOCK_MONOTONIC
        # @return [self]
        def begin_request(deadline)
          @uses += 1
          @socket.deadline = deadline
          self
        end

        # Has it carried a request before this one? Then the server may have closed it meanwhile.
        def reused? = @uses > 1

        def reusable? = !@socket.closed? && @reader.reusable?

        def stale? = @socket.stale?

        def close = @socket.close
      end
    end
  end
end
