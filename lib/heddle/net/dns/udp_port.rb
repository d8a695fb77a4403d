# frozen_string_literal: true

require "socket"

module Heddle
  module Net
    module DNS
      # The UDP socket of a {Server}: one fiber receives, responses are sent at once by the fiber that has them.
      class UDPPort
        # Datagrams taken before other fibers have their turn.
        BATCH = 64
        # Larger than any query that makes sense, so that one that was cut off is seen as malformed.
        MAX_QUERY = 4_096
        WILDCARDS = %w[0.0.0.0 ::].freeze
        # Ports of services that answer whatever comes (echo, discard, daytime, qotd, chargen, time), from which a
        # forged query starts a loop; and 0, to which no answer can be sent.
        ENDLESS = [0, 7, 9, 13, 17, 19, 37].freeze
        # Where the address is in a sockaddr: offset and size.
        IPV4_BYTES = [4, 4].freeze
        IPV6_BYTES = [8, 16].freeze

        # The sender of a datagram.
        class Source
          # @return [String] 4 or 16 bytes
          attr_reader :address_bytes

          def initialize(port, peer, address_bytes, control)
            @port = port
            @peer = peer
            @address_bytes = address_bytes
            @control = control
          end

          def transport = :udp

          def address = @address ||= AddressText.from_bytes(@address_bytes)

          # @param response [Message, String]
          def respond(response) = @port.respond(response, @peer, @address_bytes, @control)
        end

        # @return [Integer]
        attr_reader :port

        # @param address [Addrinfo]
        # @param server [Server]
        def initialize(address, server)
          @server = server
          @socket = Socket.new(address.pfamily, :DGRAM)
          @socket.setsockopt(:IPV6, :V6ONLY, true) if address.ipv6?
          @socket.bind(address)
          @port = @socket.local_address.ip_port
          @ipv6 = address.ipv6?
          @own_address = WILDCARDS.include?(address.ip_address)
          ask_for_own_address if @own_address
        end

        # Receives until the socket is closed.
        def run
          loop do
            BATCH.times { receive or @socket.wait_readable }
            Fiber.scheduler.yield
          end
        rescue IOError
          raise unless @socket.closed?
        end

        # @api private
        # @param response [Message, String] a String is sent as it is
        def respond(response, peer, address, control)
          verdict = @server.judge_rate(address)
          return if verdict == :drop

          bytes = encode(response, verdict)
          control ? @socket.sendmsg_nonblock(bytes, 0, peer, control) : @socket.send(bytes, 0, peer)
        rescue SystemCallError, IOError
          @server.count(:unsent) # no room in the socket, no route to the client, or the server has been closed
        end

        def close = @socket.close

        private

        def encode(response, verdict)
          return response if response.is_a?(String)

          response.encode(verdict == :truncate ? 0 : response.udp_limit)
        end

        # An answer from another address than the one that was asked is none to the client.
        def ask_for_own_address
          if @ipv6 then @socket.setsockopt(:IPV6, :RECVPKTINFO, 1)
          else @socket.setsockopt(:IP, :PKTINFO, 1)
          end
        end

        # @return [Boolean] was there a datagram?
        def receive
          bytes, peer, control = @own_address ? receive_with_address : receive_plain
          return false if bytes.nil? || bytes == :wait_readable

          accept(bytes, peer.to_sockaddr, control)
          true
        rescue Errno::ECONNREFUSED, Errno::EHOSTUNREACH, Errno::ENETUNREACH
          true # of an earlier response: the client has gone
        end

        def receive_plain = @socket.recvfrom_nonblock(MAX_QUERY, exception: false)

        def receive_with_address
          bytes, peer, _flags, information = @socket.recvmsg_nonblock(MAX_QUERY, exception: false)
          [bytes, peer, information && own_address(information)]
        end

        # Without the interface of IPv4: the way back may be another.
        def own_address(information)
          return information if @ipv6

          address, _interface, own = information.ip_pktinfo
          Socket::AncillaryData.ip_pktinfo(address, 0, own)
        end

        def accept(bytes, peer, control)
          port = peer.unpack1("@2n")
          return @server.count(:ignored) if port == @port || ENDLESS.include?(port)

          @server.receive(bytes, Source.new(self, peer, peer.byteslice(*(@ipv6 ? IPV6_BYTES : IPV4_BYTES)), control))
        end
      end
    end
  end
end
