# frozen_string_literal: true

module Heddle
  class Server
    # The open sockets of a process that accept connections; its loops share them.
    class Listeners
      include Enumerable

      # @param all [Array<Listener>] that are open already
      # @param shared [Boolean] whether other processes have them, too, and continue to listen after a close here
      def initialize(all = [], shared: false)
        @all = all
        @shared = shared
        @kept = false
      end

      # From now on {#close} leaves the sockets open, because this process's future children will accept on them.
      # @return [void]
      def keep_open = @kept = true

      # @param listeners [Array<Listener>]
      # @return [self]
      def concat(listeners)
        @all.concat(listeners)
        self
      end

      # @yieldparam listener [Listener]
      def each(&) = @all.each(&)

      # @return [Boolean]
      def empty? = @all.empty?

      # Warns that every client in a network that is trusted by default can forge the headers of a proxy.
      # @param configuration [Configuration]
      # @param log [#event]
      # @return [void]
      def report_trust(configuration, log)
        return unless configuration.trusted_proxies.include?("private")
        return unless configuration.source(:trusted_proxies) == Configuration::Source::DEFAULT
        return unless (listener = find(&:beyond_this_machine?))

        log.event(:proxies_trusted_by_default, address: listener.io.local_address.inspect_sockaddr)
      end

      # Idempotent. May be called from any thread.
      # @return [void]
      def close
        all = @all
        @all = []
        all.each(&(@shared ? :release : :close)) unless @kept
      end
    end
  end
end
