# frozen_string_literal: true

require "heddle/arguments"
require "heddle/scheduler"

module Heddle
  module Net
    # The sockets of a server: listeners and connections. A connection needs no fiber while it receives nothing.
    #
    #   scheduler = Heddle::Scheduler.new
    #   sockets = Heddle::Net::Sockets.new(scheduler, service: Heddle::HTTP::Engine.new) do |exchange|
    #     Heddle::Rack.respond(exchange, [200, {}, ["hello"]], false)
    #   end
    #   sockets.listen(TCPServer.new("localhost", 0))
    #
    # The service decides when the block is called, and with which item. HTTP's engine calls it with the exchange of
    # each request. The block runs in a fiber of the loop. A fiber serves many items, one after the other. Between two
    # items, the fiber's storage, locals and instance variables are removed. A StandardError that leaves the block is
    # reported like an error of any other fiber.
    #
    # Sockets don't keep the loop running; a fiber must do that, for example one that waits for a signal to stop. Only
    # the loop's thread may call the methods, apart from the counters. A forked child closes its copies of the sockets.
    class Sockets
      # @param scheduler [Scheduler]
      # @param max_connections [Integer, nil] maximum number of connections at the same time. While further ones wait in
      #   the kernel, the connections that have been idle for longest are closed. Each address may have at most a
      #   quarter of `max_connections`, or 16 connections if the quarter is less. nil: no limit
      # @param set [Symbol, nil] how events are received: `:epoll` (a separate epoll set) or `:selector` (the loop's
      #   selector); nil: the first of these that the system supports
      # @param service [Object] such as an HTTP::Engine; it chooses the protocol of each connection, and decides when to
      #   call the block and with which item
      # @param handshake_timeout [Numeric, nil] seconds within which the PROXY header and the TLS handshake together
      #   must be complete; nil: no limit
      # @param proxies [Networks, nil] addresses to which the limit per address does not apply
      # @yieldparam item [Object] such as an HTTP::Exchange
      def initialize(scheduler, service:, max_connections: nil, set: nil, handshake_timeout: 10.0, proxies: nil, &block)
        raise ArgumentError, "Sockets.new needs a block, which it calls with each item" unless block

        Arguments.count("max_connections", max_connections, 1) if max_connections
        set_up(scheduler, block, max_connections, set.to_s, service, handshake_timeout, proxies)
      end

      # Accepts connections from a listening socket, which the caller keeps and closes.
      # @param io [TCPServer, UNIXServer]
      # @param tls [TLS, nil] does the TLS handshake with each client
      # @param proxies [Networks, nil] proxies whose connections begin with a PROXY header, which contains the addresses
      #   of the client's connection. PROXY headers from other addresses are rejected
      # @param own_user [Boolean] whether to accept only processes of this user and root; for a Unix socket with an
      #   abstract name, which has no file permissions
      # @return [self]
      def listen(io, tls: nil, proxies: nil, own_user: false) = add_listener(io, tls, proxies, own_user)

      # @return [String]
      def inspect
        "#<#{self.class} connections=#{connections} running=#{running}#{" closed" if closed?}>"
      end
    end
  end
end
