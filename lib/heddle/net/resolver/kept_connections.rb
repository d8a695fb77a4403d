# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Keeps TCP connections to name servers for a burst of questions whose answers are too large for UDP (RFC 7766,
      # section 6.2.1). Each has one question at a time.
      #
      # @api private
      class KeptConnections
        # Seconds. Servers close an idle connection after about ten.
        MAX_AGE = 5
        # Connections for each server.
        MAX_KEPT = 4

        # @param clock [#call] seconds of a monotonic clock
        def initialize(clock)
          @clock = clock
          @kept = {}
          @process = Process.pid
        end

        # @param server [Addrinfo]
        # @return [OutboundConnection, nil] one that no other fiber uses now
        def take(server)
          forget_parent
          list = @kept[server.to_sockaddr] or return nil
          while (connection, since = list.pop)
            return connection if @clock.call - since <= MAX_AGE && !connection.stale?

            connection.close
          end
        end

        # @param server [Addrinfo]
        # @param connection [OutboundConnection] one whose question has been answered
        # @return [Boolean] false: there are enough
        def keep(server, connection)
          forget_parent
          list = (@kept[server.to_sockaddr] ||= [])
          return false if list.size >= MAX_KEPT

          list << [connection, @clock.call]
          true
        end

        # @return [Integer]
        def size = @kept.each_value.sum(&:size)

        private

        # A forked child and its parent would read each other's answers.
        def forget_parent
          return if @process == Process.pid

          @process = Process.pid
          @kept.each_value { |list| list.each { |kept| kept.first.close } }
          @kept.clear
        end
      end
    end
  end
end
