# frozen_string_literal: true

require "socket"

module Heddle
  module Net
    # Connects to the one of several addresses that accepts first (Happy Eyeballs, RFC 8305). Tries IPv6 and IPv4
    # addresses alternately. Starts the next attempt when a pending one fails, or 250 ms after the latest one began.
    class HappyEyeballs
      # Seconds between attempts (RFC 8305, section 5).
      DELAY = 0.25
      private_constant :DELAY

      # @param addresses [Array<Addrinfo>] at least one; the preferred ones first
      # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC
      def initialize(addresses, deadline, host, port)
        @waiting = interleave(addresses)
        @deadline = deadline
        @host = host
        @port = port
        @pending = {} # socket => Addrinfo
      end

      # @return [Socket]
      # @raise [SystemCallError] the error that came first, when all attempts have failed
      # @raise [ConnectTimeoutError]
      def run
        winner = nil
        until winner
          raise @failure if @waiting.empty? && @pending.empty?

          winner = start_next || await
        end
        winner
      ensure
        @pending.each_key { |socket| socket.close unless socket.equal?(winner) }
      end

      private

      # Alternates between IPv6 and IPv4, beginning with the family of the first address (RFC 8305, section 4).
      def interleave(addresses)
        first, second = addresses.partition { |address| address.afamily == addresses.first.afamily }
        first.zip(second).flatten.compact + (second[first.size..] || [])
      end

      # Begins attempts until one is pending or succeeds, or no address is left.
      #
      # @return [Socket, nil] the socket, if it has connected immediately
      def start_next
        socket = nil
        return unless (address = @waiting.shift)

        socket = Socket.new(address.afamily, :STREAM)
        result = socket.connect_nonblock(address.to_sockaddr, exception: false)
        @pending[socket] = address
        result == :wait_writable ? nil : socket
      rescue SystemCallError => e
        fail_attempt(socket, e)
        retry # a failure starts the next attempt at once, even if others are pending
      end

      # @return [Socket, nil] a connected socket; nil: the caller should start another attempt
      def await
        ready_sockets&.each do |socket|
          error = socket.getsockopt(:SOCKET, :ERROR).int
          return socket if error.zero?

          address = @pending[socket].ip_address
          fail_attempt(socket, SystemCallError.new("connect to #{@host}:#{@port} (#{address})", error))
        end
        nil
      end

      # @return [Array<Socket>, nil] sockets that have connected or failed; nil: none has within {longest_wait}
      def ready_sockets
        sockets = @pending.keys
        return IO.select(nil, sockets, nil, longest_wait)&.at(1) if sockets.size > 1

        sockets if sockets.first&.wait_writable(longest_wait)
      end

      # Seconds until the next attempt or the deadline; nil: no limit.
      def longest_wait
        left = @deadline && (@deadline - MonotonicClock.now)
        raise ConnectTimeoutError, "no connection to #{@host}:#{@port} in time" if left && left <= 0
        return left if @waiting.empty?

        left ? [left, DELAY].min : DELAY
      end

      def fail_attempt(socket, error)
        @failure ||= error
        @pending.delete(socket)
        socket&.close
      end
    end
  end
end
