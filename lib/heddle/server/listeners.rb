# frozen_string_literal: true

module Heddle
  class Server
    # The listening sockets of a process. All its loops share them.
    class Listeners
      include Enumerable

      # @param all [Array<Listener>] listeners that are open already
      # @param shared [Boolean] whether other processes have the sockets, too, and keep listening when this process
      #   closes them
      def initialize(all = [], shared: false)
        @all = all
        @shared = shared
        @kept = false
      end

      # From now on, {#close} leaves the sockets open, for processes that this one will fork.
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

      # Warns if the server listens on an address other than loopback, and trusts private networks because
      # trusted_proxies is not set. Each client in these networks can then forge a proxy's headers.
      # @param configuration [Configuration]
      # @param log [#event]
      # @return [void]
      def report_trust(configuration, log)
        return unless configuration.trusted_proxies.include?("private")
        return unless configuration.source(:trusted_proxies) == Configuration::Source::DEFAULT
        return unless (listener = find(&:beyond_this_machine?))

        log.event(:proxies_trusted_by_default, address: listener.io.local_address.inspect_sockaddr)
      end

      # Closes the sockets, except after {#keep_open}. Does nothing if they are closed already. May be called from any
      # thread.
      # @return [void]
      def close
        all = @all
        @all = []
        all.each(&(@shared ? :release : :close)) unless @kept
      end
    end
  end
end
