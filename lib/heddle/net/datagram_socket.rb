# frozen_string_literal: true

require "heddle/native"

module Heddle
  module Net
    # A UDP socket that receives many datagrams with one system call. Any loop or thread may use it. In a loop only the
    # calling fiber waits; outside of a loop the thread waits. A forked child can't use it.
    #
    #     socket = Heddle::Net::DatagramSocket.bind("0.0.0.0", 5353)
    #     loop { socket.receive { |bytes, peer| socket.send(bytes, peer) } }
    #
    # The C extension defines `receive`, `send`, `close` and the other methods (ext/heddle/net/datagram_ruby.c). It also
    # defines LARGEST, the maximum number of bytes in a datagram.
    class DatagramSocket
      # Addresses that stand for all addresses of the machine. A socket that is bound to one of them records to which
      # local address each datagram was sent, so that the response is sent from that address.
      WILDCARDS = %w[0.0.0.0 ::].freeze

      # @param address [String] an IP address of this machine; "::" receives IPv6 only
      # @param port [Integer] 0: any free port
      # @param max_size [Integer] maximum bytes to keep of a received datagram, 1 to 65,535; longer ones are truncated
      # @return [DatagramSocket]
      # @raise [SystemCallError] when the address can't be bound
      # @raise [ArgumentError] when the address is not an IP address, or the port or the size is out of range
      def self.bind(address, port, max_size: LARGEST)
        require "socket"
        local = numeric(address, port)
        socket = Socket.new(local.pfamily, :DGRAM)
        socket.setsockopt(:IPV6, :V6ONLY, true) if local.ipv6?
        wildcard = WILDCARDS.include?(local.ip_address)
        report_own_address(socket, local) if wildcard
        socket.bind(local)
        adopt(socket, max_size, wildcard)
      rescue Exception
        socket&.close # otherwise the port stays in use until the next garbage collection
        raise
      end

      class << self
        private

        # Peer.new checks address and port, because Addrinfo accepts too much: "" and "<any>" as wildcards, and port
        # numbers above 65,535, of which it uses the lower 16 bits.
        def numeric(address, port)
          Peer.new(address.to_s.sub(/%[^%]+\z/, ""), port) # without a zone: fe80::1, not fe80::1%eth0
          Addrinfo.getaddrinfo(address, port, nil, :DGRAM, nil, Socket::AI_NUMERICHOST).first
        rescue SocketError
          raise ArgumentError, "#{address.inspect} is not an IP address: write it like 192.0.2.1 or 2001:db8::1"
        end

        def report_own_address(socket, local)
          local.ipv6? ? socket.setsockopt(:IPV6, :RECVPKTINFO, 1) : socket.setsockopt(:IP, :PKTINFO, 1)
        end
      end
    end
  end
end
