# frozen_string_literal: true

require "socket"
require_relative "../sockets"

module Heddle
  module Net
    module DNS
      # The TCP socket of a {Server}. A connection carries many queries, which are answered in any order (RFC 7766).
      class TCPPort
        # @param address [Addrinfo]
        # @param server [Server]
        # @param idle [Numeric] seconds that a connection without a query under way stays open
        # @param connections [Integer] at most, of all clients; the longest idle one is closed for a new one,
        #   and without an idle one further ones wait in the kernel
        # @param per_client [Integer] connections of one address
        def initialize(address, server, idle:, connections:, per_client:)
          @server = server
          @idle = idle
          @most = connections
          @per_client = per_client
          @clients = Hash.new(0)
          @sessions = {}.compare_by_identity
          @listener = TCPServer.new(address.ip_address, address.ip_port)
          # Counts each client's connections, even before they send anything. So the sockets' own limit by address is
          # off.
          @sockets = Sockets.new(Fiber.scheduler, idle_timeout: idle, max_connections: connections, at_once: true,
                                                  proxies: Networks.new(["all"])) { |connection| serve(connection) }
        end

        # @return [Integer]
        def port = @listener.local_address.ip_port

        def listen = @sockets.listen(@listener)

        # @return [Integer] open connections
        def connections = @sockets.connections

        # @return [Integer] connections so far
        def accepted = @sockets.accepted

        def close
          @sockets.close
          @listener.close
        end

        private

        # Closes a connection beyond the client's share without a response, so that the client tries again.
        def serve(connection)
          address = IPAddr.new(connection.remote_address).native.hton
          client = @server.source_key(address)
          return @server.count(:rejected_connections) if (@clients[client] += 1) > @per_client

          close_idle if @sockets.connections >= @most
          session = TCPSession.new(connection, address, @server, @idle)
          @sessions[session] = true
          session.run
        ensure
          @sessions.delete(session)
          @clients.delete(client) if (@clients[client] -= 1) <= 0
        end

        # Makes room for the next client. Otherwise a few addresses could keep all others out.
        def close_idle = @sessions.each_key.select(&:idle?).min_by(&:idle_until)&.close
      end
    end
  end
end
