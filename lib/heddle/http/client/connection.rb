# frozen_string_literal: true

require "heddle/net"

module Heddle
  module HTTP
    class Client
      # An HTTP/1.1 connection of an {OriginPool}. One request uses it at a time, in any loop or thread.
      #
      # @api private
      class Connection
        # The limits of a response's head and framing. {Client} limits the size of the body.
        LIMITS = Limits.new(header_limit: Defaults::HEADER_LIMIT, header_count: Defaults::HEADER_COUNT,
                            body_limit: 1 << 50, chunk_overhead_limit: 1 << 50)
        private_constant :LIMITS

        # @return [Net::OutboundConnection]
        attr_reader :socket
        # @return [H1::ResponseReader]
        attr_reader :reader
        # @return [Integer] number of requests sent on this connection
        attr_reader :uses
        # @return [Float] when the connection became idle, in seconds of CLOCK_MONOTONIC
        attr_accessor :idle_since

        def initialize(socket)
          @socket = socket
          @reader = H1::ResponseReader.new(socket, LIMITS)
          @uses = 0
        end

        # @return [Carrier]
        def carrier(request, limits, deadline) = H1Carrier.new(self, request, limits, deadline)

        # @param deadline [Float, nil] the request's deadline, in seconds of CLOCK_MONOTONIC
        # @return [self]
        def begin_request(deadline)
          @uses += 1
          @socket.deadline = deadline
          self
        end

        # Has an earlier request used this connection? If so, the server may have closed it since.
        def reused? = @uses > 1

        def reusable? = !@socket.closed? && @reader.reusable?

        def stale? = @socket.stale?

        def close = Lock.interruptible(:never) { @socket.close }
      end
    end
  end
end
