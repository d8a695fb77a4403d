# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # An HTTP proxy, configured by the `proxy:` option or by the environment (`http_proxy`, `https_proxy`,
      # `no_proxy`).
      #
      # @api private
      class Proxy
        # @param choice [:environment, String, false, nil]
        # @return [Proxy, nil] nil: the client connects without a proxy
        # @raise [ArgumentError]
        def self.for(choice, scheme, host, port)
          case choice
          when nil, false then nil
          when :environment then ProxyEnvironment.find(scheme, host, port)&.then { |url| new(url) }
          when String then new(choice)
          else raise ArgumentError, "proxy: is #{choice.inspect}, but must be a URL, :environment or nil"
          end
        end

        # @param url [String] possibly invalid
        # @return [String] the URL without name and password, for error messages
        def self.mask(url) = url.sub(%r{\A([a-z][a-z0-9+.-]*:(?=//))?(//)?.*@}mi, '\1\2')

        # @return [String]
        attr_reader :host
        # @return [Integer]
        attr_reader :port
        # @return [Array<String>] name and value of the field with the credentials in the proxy's URL; empty: the URL
        #   has none
        attr_reader :fields

        # @param url [String] such as "http://name:password@proxy.example:3128"
        def initialize(url)
          uri = URI(url)
          raise ArgumentError, "proxy: #{self.class.mask(url).inspect} must have the form http://host:port" unless
            uri.is_a?(URI::HTTP) && uri.scheme == "http" && uri.hostname

          @host = uri.hostname
          @port = uri.port
          credentials = Fields.credentials(uri)
          @fields = credentials ? ["Proxy-Authorization", credentials] : []
        rescue URI::InvalidURIError
          # Without the cause, because its message contains the password.
          raise ArgumentError, "proxy: #{self.class.mask(url).inspect} is not a URL", cause: nil
        end

        # @return [String] the URL without credentials
        def to_s = "http://#{@host}:#{@port}"

        # @param connection [Net::OutboundConnection] to the proxy
        # @param authority [String] the server's host and port
        # @return [Net::OutboundConnection] the same connection, now a tunnel to the server
        # @raise [ProxyError] if the proxy opens no tunnel; after any error the connection is closed
        def open_tunnel(connection, authority, limits, deadline)
          connection.deadline = deadline
          lines = Fields.lines(["Host", authority, *@fields])
          connection.write("CONNECT #{authority} HTTP/1.1\r\n#{lines}\r\n", timeout: limits.write)
          head = Connection.new(connection).reader.read_head("CONNECT", limits.first_byte, limits.read)
          raise ProxyError, "proxy #{self} closed the connection without a response to CONNECT" unless head
          raise ProxyError, "proxy #{self}: #{head.reason}" if head.is_a?(Rejection)
          return tunnel = connection if head.upgrade?

          raise ProxyError, "proxy #{self} refused a tunnel to #{authority}: #{head.status} #{head.reason}"
        ensure
          connection.close unless tunnel
        end
      end
    end
  end
end
