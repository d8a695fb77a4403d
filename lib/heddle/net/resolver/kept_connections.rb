# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Keeps TCP connections to name servers for a burst of questions whose answers are too large for UDP (RFC 7766,
      # section 6.2.1). A connection is used for one question at a time. A connection that is too old is closed when
      # the next question would use it.
      #
      # @api private
      class KeptConnections
        # Seconds for which a kept connection may be used again. Servers close idle connections after about ten seconds.
        MAX_AGE = 5
        # Maximum number of kept connections to each server.
        MAX_KEPT = 4

        # @param clock [#call] returns seconds of a monotonic clock
        def initialize(clock)
          @clock = clock
          @kept = {}
          @process = Process.pid
        end

        # @param server [Addrinfo]
        # @return [OutboundConnection, nil] a kept connection, for the caller's exclusive use; nil: there is none
        def take(server)
          forget_parent
          list = @kept[server.to_sockaddr] or return nil
          while (connection, since = list.pop)
            return connection if @clock.call - since <= MAX_AGE && !connection.stale?

            connection.close
          end
        end

        # @param server [Addrinfo]
        # @param connection [OutboundConnection] a connection whose question was answered
        # @return [Boolean] false: enough connections are kept, so the caller must close this one
        def keep(server, connection)
          forget_parent
          list = (@kept[server.to_sockaddr] ||= [])
          return false if list.size >= MAX_KEPT

          list << [connection, @clock.call]
          true
        end

        # @return [Integer] number of kept connections
        def size = @kept.each_value.sum(&:size)

        private

        # Drops the parent's connections in a forked child. Otherwise child and parent would read each other's
        # responses.
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
