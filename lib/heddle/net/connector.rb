# frozen_string_literal: true

require "socket"
require "timeout"
require "heddle/net"
require "heddle/net/happy_eyeballs"
require "heddle/arguments"

module Heddle
  module Net
    # Raised when name resolution and connecting together take too long.
    class ConnectTimeoutError < IO::TimeoutError
      include Heddle::Error
    end

    # Raised when the TLS handshake takes too long.
    class TLSTimeoutError < IO::TimeoutError
      include Heddle::Error
    end

    # Raised when `allow:` of {Net.connect}, or `deny_private:` of {HTTP::Client}, rejects all addresses of the host.
    class PrivateAddressError < IOError
      include Heddle::Error
    end

    # Opens outbound connections to one endpoint. A connector is frozen, so several threads may use it.
    class Connector
      ENDPOINT = /\A(?:\[(?<address>[0-9a-fA-F:.]+(?:%[^\]\s]+)?)\]|(?<name>[^\[\]:\s]+)):(?<port>\d{1,5})\z/
      # Matches an address, not a name.
      LITERAL = /\A(?:[\d.]+|.*:.*)\z/
      # Seconds between two attempts to connect to a unix socket whose listen queue is full.
      PAUSE = 0.005
      # Ends a name resolution that takes too long. Not an IOError, because the resolver rescues IOErrors.
      class Expired < Exception; end
      private_constant :ENDPOINT, :LITERAL, :PAUSE, :Expired

      # @return [String] host name, numeric address, or path of a unix socket
      attr_reader :host
      # @return [Integer, nil] nil for a unix socket
      attr_reader :port

      # @param (see Net.connect)
      # @param tls_timeout [Numeric, nil] seconds for the TLS handshake
      # @raise [ArgumentError]
      def initialize(endpoint, tls: false, timeout: 10, tls_timeout: timeout, allow: nil)
        @host, @port = parse(endpoint)
        @literal = [Addrinfo.tcp(@host, @port)].freeze if @port && @host.match?(LITERAL)
        @timeout = Arguments.limit("timeout:", timeout)
        @tls_timeout = Arguments.limit("tls_timeout:", tls_timeout)
        @allow = Arguments.callable("allow:", allow)
        @context = tls_context(tls)
        freeze
      end

      # @param deadline [Float, nil] in seconds of CLOCK_MONOTONIC, for all steps together
      # @return [OutboundConnection]
      def connect(deadline: nil)
        socket = open_socket(earlier(now, @timeout, deadline))
        connection = @context ? secure(socket, @host, deadline) : Native.adopt_outbound(socket)
      ensure
        socket&.close unless connection # also when an exception interrupts this fiber
      end

      # Does the TLS handshake with a server on an existing connection, such as a proxy's tunnel.
      # @param connection [OutboundConnection]
      # @return [OutboundConnection]
      def secure_tunnel(connection, host, deadline: nil)
        socket = connection.detach
        tunnel = secure(socket, host, deadline)
      ensure
        (socket || connection).close unless tunnel
      end

      private

      def secure(socket, host, deadline)
        secure = @context.handshake(socket, host, earlier(now, @tls_timeout, deadline))
        Native.adopt_outbound(socket, secure)
      end

      def parse(endpoint)
        return [endpoint.delete_prefix("unix:"), nil] if endpoint.to_s.start_with?("unix:/")

        parts = ENDPOINT.match(endpoint.to_s)
        return [parts[:address] || parts[:name], port_of(parts[:port], endpoint)] if parts

        raise ArgumentError, "endpoint #{endpoint.inspect} must have the form host:port, [IPv6 address]:port or " \
                             "unix:/path"
      end

      def port_of(text, endpoint)
        port = Integer(text, 10)
        return port if port.between?(1, 65_535)

        raise ArgumentError, "endpoint #{endpoint.inspect}: the port is #{port}, but must be from 1 to 65535"
      end

      def tls_context(tls)
        return unless tls

        case tls
        when TLS::ClientContext then tls
        when true then TLS::ClientContext.default
        when Hash then TLS::ClientContext.new(**tls)
        else Arguments.refuse("tls:", tls, "true, false, a Hash or a TLS::ClientContext")
        end
      end

      def open_socket(deadline)
        return open_unix(deadline) unless @port

        socket = HappyEyeballs.new(allowed(addresses(deadline)), deadline, @host, @port).run
        socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
        socket
      end

      # Tries again at an interval while the listen queue is full, because the kernel does not report when a unix
      # socket's queue has room again.
      def open_unix(deadline)
        until connected?(socket = UNIXSocket.new(@host))
          socket.close
          raise ConnectTimeoutError, "unix:#{@host} accepted no connection in time" if deadline && now >= deadline

          sleep(PAUSE)
        end
        socket
      end

      # When the listen queue is full, Ruby returns a socket that is not connected.
      def connected?(socket)
        socket.getpeername
        true
      rescue Errno::ENOTCONN
        false
      end

      # @return [Array<Addrinfo>]
      def addresses(deadline)
        return @literal if @literal

        left = deadline && (deadline - now)
        Timeout.timeout(left && [left, 0.001].max, Expired) { Addrinfo.getaddrinfo(@host, @port, nil, :STREAM) }
      rescue Expired
        raise ConnectTimeoutError, "the name #{@host} was not resolved in time"
      end

      def allowed(addresses)
        return addresses unless @allow

        allowed = addresses.select { |address| @allow.call(address.ip_address) }
        return allowed if allowed.any?

        raise PrivateAddressError, "`deny_private` or `allow` rejects every address of #{@host}: " \
                                   "#{addresses.map(&:ip_address).uniq.join(", ")}"
      end

      def earlier(started, seconds, deadline)
        own = seconds && (started + seconds)
        own && deadline ? [own, deadline].min : own || deadline
      end

      def now = MonotonicClock.now
    end
  end
end
