# frozen_string_literal: true

require_relative "../datagram_socket"

module Heddle
  module Net
    module DNS
      # The UDP socket of a {Server}. One fiber receives all queries. The task of each query sends the response.
      class UDPPort
        # Bytes; larger than any valid query, so that a truncated datagram counts as malformed.
        MAX_QUERY = 4_096
        # Source ports whose datagrams are ignored. Some belong to services that reply to any datagram (echo, daytime,
        # qotd, chargen, time), so a forged query could start an endless exchange. The service on port 9 (discard) reads
        # no response, and nothing can be sent to port 0.
        ENDLESS = [0, 7, 9, 13, 17, 19, 37].freeze

        # The sender of a datagram.
        class Source
          # @return [String] 4 or 16 bytes
          attr_reader :address_bytes

          # @param port [UDPPort]
          # @param peer [DatagramSocket::Peer]
          def initialize(port, peer)
            @port = port
            @peer = peer
            @address_bytes = peer.address_bytes
          end

          def transport = :udp

          def address = @address ||= AddressText.from_bytes(@address_bytes)

          # @param response [Message]
          def respond(response) = @port.respond(response, @peer, @address_bytes)
        end

        # @return [Integer]
        attr_reader :port

        # @param address [Addrinfo]
        # @param server [Server]
        def initialize(address, server)
          @server = server
          @socket = DatagramSocket.bind(address.ip_address, address.ip_port, max_size: MAX_QUERY)
          @port = @socket.port
          @counted = 0
        end

        # Receives until the socket is closed.
        def run
          loop do
            @socket.receive { |bytes, peer| accept(bytes, peer) }
            count_unsent
          end
        rescue IOError
          raise unless @socket.closed?
        ensure
          count_unsent
        end

        # @api private
        # @param response [Message]
        def respond(response, peer, address)
          verdict = @server.judge_rate(address)
          return if verdict == :drop

          @socket.send(response.encode(verdict == :truncate ? 0 : response.udp_limit), peer) or count_unsent
        rescue IOError
          @server.count(:unsent) # the server was closed meanwhile
        end

        def close = @socket.close

        private

        # Counts responses that were not sent because the socket's buffer was full, or because there was no route to the
        # client.
        def count_unsent
          unsent = @socket.unsent
          @server.count(:unsent, unsent - @counted) if unsent > @counted
          @counted = unsent
        end

        def accept(bytes, peer)
          port = peer.port
          return @server.count(:ignored) if port == @port || ENDLESS.include?(port)

          @server.receive(bytes, Source.new(self, peer))
        end
      end
    end
  end
end
