# frozen_string_literal: true

require "heddle/scheduler"

module Heddle
  module Net
    # The sockets of a server: listeners, and connections that cost no fiber while nothing comes from them.
    #
    #   scheduler = Heddle::Scheduler.new
    #   sockets = Heddle::Net::Sockets.new(scheduler, service: Heddle::HTTP::Engine.new) do |exchange|
    #     Heddle::Rack.respond(exchange, [200, {}, ["hello"]], false)
    #   end
    #   sockets.listen(TCPServer.new("localhost", 0))
    #
    # The service decides when the block is called, and with which item: HTTP's engine calls it with each request's
    # exchange. The block runs in a fiber of the loop. A fiber serves many items, one after the other: its storage,
    # locals and instance variables are removed in between. A StandardError that leaves the block is reported like any
    # fiber's.
    #
    # Sockets don't keep the loop running: a fiber must do that, such as one that waits for a signal to stop. Everything
    # but the counters belongs to the loop's thread. In a forked child, the copies of the sockets are closed.
    class Sockets
      # @param scheduler [Scheduler]
      # @param max_connections [Integer, nil] the maximum number at a time. While others wait in the kernel, the
      #   connections that have been idle longest are closed. One address may have a quarter of them, and at least 16
      # @param set [Symbol, nil] how events are received: `:epoll` (an epoll set of its own), `:selector` (the loop's
      #   selector); nil: the first one that the system has
      # @param service [Object] the service of the connections, such as an HTTP::Engine. It chooses the protocol of each
      #   connection, and decides when a connection needs a fiber and what the block gets
      # @param handshake_timeout [Numeric, nil] seconds that a connection may take until its protocol begins: for the
      #   header of the PROXY protocol and the TLS handshake together
      # @param proxies [Networks, nil] addresses that may have any number of connections
      # @yieldparam item [Object] such as an HTTP::Exchange
      def initialize(scheduler, service:, max_connections: nil, set: nil, handshake_timeout: 10.0, proxies: nil, &block)
        raise ArgumentError, "Sockets.new needs a block, which it calls with each item" unless block
        if max_connections && max_connections < 1
          raise ArgumentError, "max_connections must be at least 1, not #{max_connections}"
        end

        set_up(scheduler, block, max_connections, set.to_s, service, handshake_timeout, proxies)
      end

      # Accepts connections from a listening socket, which the caller keeps and closes.
      # @param io [TCPServer, UNIXServer]
      # @param tls [TLS, nil] makes the TLS handshake with each client
      # @param proxies [Networks, nil] proxies whose connections begin with a PROXY header. The connection gets the
      #   addresses in it. Such a header from elsewhere is rejected
      # @param own_user [Boolean] whether to close connections of processes of other users than this one and root; for a
      #   Unix socket with an abstract name, which has no permissions
      # @return [self]
      def listen(io, tls: nil, proxies: nil, own_user: false) = add_listener(io, tls, proxies, own_user)

      # @return [String]
      def inspect
        "#<#{self.class} connections=#{connections} running=#{running}#{" closed" if closed?}>"
      end
    end
  end
end
