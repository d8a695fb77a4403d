# frozen_string_literal: true

require "ipaddr"
require "socket"

module Heddle
  module Net
    module DNS
      # The TCP socket of a {Server}. One fiber accepts connections, and each connection has a fiber. A connection may
      # have many queries, which are answered in any order (RFC 7766).
      class TCPPort
        # Seconds to wait before the next attempt to accept, when the system lacks a descriptor or memory for a
        # connection.
        PAUSE = 0.1

        # @return [Integer] number of connections accepted so far
        attr_reader :accepted

        # @param address [Addrinfo]
        # @param server [Server]
        # @param idle [Numeric] seconds that a connection without a running query stays open
        # @param connections [Integer] maximum number of connections. A new connection that exceeds this number closes
        #   the longest idle one; if none is idle, further connections wait in the kernel
        # @param per_client [Integer] maximum number of connections of one client
        def initialize(address, server, idle:, connections:, per_client:)
          @server = server
          @idle = idle
          @max_connections = connections
          @per_client = per_client
          @accepted = 0
          @clients = Hash.new(0)
          @sessions = {}.compare_by_identity # session => its task
          @changes = Thread::Queue.new # has an entry when a connection has ended or become idle
          @listener = TCPServer.new(address.ip_address, address.ip_port)
          @listener.setsockopt(:TCP, :NODELAY, true) # the accepted sockets inherit it
        end

        # @return [Integer]
        def port = @listener.local_address.ip_port

        # @return [Integer] open connections
        def connections = @sessions.size

        # Accepts until the socket is closed.
        def run
          Heddle.supervise(on_failure: method(:note_failure)) { |scope| accept(scope) until @listener.closed? }
        rescue IOError
          raise unless @listener.closed?
        ensure
          @sessions.each_key(&:release)
        end

        def close = @listener.close

        # @api private
        # Called when a session has ended or has no running query.
        def note_change
          @changes.push(true) if @changes.empty?
        end

        # @api private
        # Called when a session ends: another connection may take its place.
        def forget(session)
          @sessions.delete(session) or return
          client = @server.source_key(session.address_bytes)
          @clients.delete(client) if (@clients[client] -= 1) <= 0
          note_change
        end

        private

        def accept(scope)
          @listener.wait_readable
          await_room
          socket = @listener.accept_nonblock(exception: false)
          return if socket == :wait_readable # the client has left

          start(scope, socket)
          @accepted += 1
        rescue SystemCallError
          sleep(PAUSE) # the connection remains in the kernel's listen queue
        end

        def await_room
          until @sessions.size < @max_connections || longest_idle
            @changes.clear
            @changes.pop
          end
        end

        # The session whose connection is closed for a new one, so that a few addresses can't occupy all connections.
        def longest_idle = @sessions.each_key.select(&:idle?).min_by(&:idle_until)

        # Starts a session, or closes the connection at once if the client has too many connections.
        def start(scope, socket)
          address = address_of(socket) or return socket.close
          client = @server.source_key(address)
          if @clients[client] >= @per_client
            @server.count(:rejected_connections)
            return socket.close
          end

          @clients[client] += 1
          longest_idle&.close if @sessions.size >= @max_connections
          session = TCPSession.new(socket, address, @server, self, @idle)
          @sessions[session] = scope.async(name: "DNS over TCP") { serve(session) }
        end

        # @return [String, nil] 4 or 16 bytes; nil: the client has left
        def address_of(socket)
          IPAddr.new(socket.remote_address.ip_address).native.hton
        rescue SystemCallError
          nil
        end

        def serve(session)
          session.run
        ensure
          finish(session)
        end

        def finish(session)
          session.release
          forget(session)
        end

        # Called when a session's task has failed. A task without memory for its fiber fails before it begins, so its
        # session is finished here.
        def note_failure(task, error)
          finish(@sessions.key(task)) if @sessions.value?(task)
          Events.report(:task_failed, task: task, error: ErrorText.full(error))
        end
      end
    end
  end
end
