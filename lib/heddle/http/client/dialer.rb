# frozen_string_literal: true

require "heddle/net"
require "heddle/net/connector"

module Heddle
  module HTTP
    class Client
      # Opens connections to one origin, directly or through a proxy. For an https origin it asks the proxy for a tunnel
      # (CONNECT).
      #
      # @api private
      class Dialer
        # @param proxy [Proxy, nil]
        def initialize(scheme, host, port, settings, proxy)
          @tls = scheme == "https"
          @host = host
          @port = port
          @settings = settings
          @proxy = proxy
          @direct = nil # the latest time limits, and the connector made with them
        end

        # @return [Dialer] a copy whose connections offer the server only HTTP/1.1
        def without_http2 = Dialer.new(@tls ? "https" : "http", @host, @port, @settings.without_http2, @proxy)

        # @param limits [TimeLimits]
        # @param deadline [Float, nil] the time of {MonotonicClock} at which the whole request must end; nil: no limit
        # @return [Net::OutboundConnection]
        # @raise [Error]
        def call(limits, deadline)
          @proxy ? through_proxy(limits, deadline) : direct_connector(limits).connect(deadline:)
        rescue Error
          raise
        rescue StandardError => e
          kind = kind_of(e, deadline) or raise
          raise kind, "#{@host}:#{@port}: #{e.message}"
        end

        private

        # Keeps one connector for the time limits of the latest call, because most calls use the client's limits.
        def direct_connector(limits)
          known, connector = @direct
          return connector if known.equal?(limits)

          connector = connector(@host, @port, @tls, limits)
          @direct = [limits, connector].freeze # one assignment for both, because other threads may read them
          connector
        end

        def through_proxy(limits, deadline)
          # Makes this connector first: it may have to load a file, for which the connection to the proxy would wait.
          secure = connector(@host, @port, true, limits) if @tls
          connection = reach_proxy(limits, deadline)
          return connection unless secure

          tunnel = @proxy.open_tunnel(connection, "#{@host.include?(":") ? "[#{@host}]" : @host}:#{@port}", limits,
                                      deadline)
          secure.secure_tunnel(tunnel, @host, deadline: deadline)
        end

        def reach_proxy(limits, deadline)
          connector(@proxy.host, @proxy.port, false, limits).connect(deadline: deadline)
        rescue SystemCallError, SocketError => e
          raise ProxyError, "proxy #{@proxy}: #{e.message}"
        end

        def connector(host, port, tls, limits)
          Net::Connector.new("#{host.include?(":") ? "[#{host}]" : host}:#{port}",
                             tls: tls && context, timeout: limits.connect, tls_timeout: limits.tls,
                             allow: @settings.deny_private ? Net::PrivateNetworks.method(:outside?) : nil)
        end

        def context
          @settings.tls || Net::TLS::ClientContext.for({ protocols: @settings.protocols })
        end

        # Returns the subclass of Client::Error to raise for this error, or nil. Does not load OpenSSL.
        def kind_of(error, deadline)
          case error
          when IO::TimeoutError, Errno::ETIMEDOUT
            return TotalTimeoutError if deadline && MonotonicClock.now >= deadline

            error.is_a?(Net::TLSTimeoutError) ? TLSTimeoutError : ConnectTimeoutError
          when Net::PrivateAddressError then PrivateAddressError
          when SystemCallError, SocketError, IOError then ConnectError
          else TLSError if defined?(::OpenSSL::SSL::SSLError) && error.is_a?(::OpenSSL::SSL::SSLError)
          end
        end
      end
    end
  end
end
