# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Turns URLs into origins and targets.
      #
      # @api private
      class URLParser
        TARGET = %r{\A/[!-"$-~]*\z} # path and query, percent-encoded
        URL = %r{\Ahttps?://}i
        USUAL_PORTS = { "http" => 80, "https" => 443 }.freeze
        PORTS = 1..65_535
        # Scheme, user, host and port of a URL that may be relative.
        AUTHORITY = %r{\A(?:[a-z][a-z0-9+.-]*:)?(?://[^/?#]*)?}i
        # Characters that RFC 3986 does not allow in a path or query.
        UNENCODED = /[^!-~]|["<>\[\\\]^`{|}]|%(?!\h\h)/n
        private_constant :TARGET, :URL, :USUAL_PORTS, :PORTS, :AUTHORITY, :UNENCODED

        # @param base [String, nil]
        # @param settings [ConnectionSettings]
        # @raise [ArgumentError]
        def initialize(base, settings)
          @settings = settings
          @process = Process.pid
          @base = base && parse(base.to_s)
          @prefix = @base ? @base.path.delete_suffix("/") : ""
          raise ArgumentError, "base #{base.inspect} must have no query or fragment" if @base&.query || @base&.fragment
        end

        # @param url [String, URI]
        # @return [Array(OriginPool, String, Hash)] origin, target, and the Authorization field for the URL's userinfo
        #   or nil
        # @raise [ArgumentError]
        def find(url)
          url = url.to_s
          if url.start_with?("/") && !url.start_with?("//") && @base
            url.match?(TARGET) or raise ArgumentError, "path #{url.inspect} has characters that must be percent-encoded"

            return [base_origin, @prefix.empty? ? url : "#{@prefix}#{url}", own_fields(@base)]
          end
          unless url.match?(URL)
            path = @base ? " or a path that begins with /" : " (a path needs a client with a base URL)"
            raise ArgumentError, "#{url.inspect} is not an http:// or https:// URL#{path}"
          end

          uri = parse(url)
          [origin_of(uri), uri.request_uri, own_fields(uri)]
        end

        # @param location [String] the redirect's Location, possibly relative to origin and target
        # @return [Array(OriginPool, String, Hash)] see {#find}
        def follow(location, origin, target)
          uri = URI.join(encoded("#{origin}#{target}"), encoded(location))
          find(uri.to_s)
        rescue URI::Error, ArgumentError
          raise RedirectError, "#{origin}#{target} redirects to #{location.inspect}, which can't be followed"
        end

        def to_s = @base ? "#{@base.scheme}://#{@base.host}#{@prefix}" : "without a base"

        private

        # Some servers send a Location with blanks, umlauts or brackets. Browsers percent-encode these characters
        # (WHATWG URL).
        def encoded(url)
          url = url.b
          authority = url[AUTHORITY]
          rest = url.byteslice(authority.bytesize..)
          authority + rest.gsub(UNENCODED) { |character| format("%%%02X", character.ord) }
        end

        def parse(url)
          uri = URI.parse(url)
          raise ArgumentError, "#{url.inspect} is not an http:// or https:// URL with a host" unless
            uri.is_a?(URI::HTTP) && uri.hostname && !uri.hostname.empty?
          return uri if PORTS.cover?(uri.port)

          raise ArgumentError, "#{url.inspect}: the port is #{uri.port}, but must be from 1 to 65535"
        rescue URI::InvalidURIError
          raise ArgumentError, "#{url.inspect} is not a URL: percent-encode the characters that RFC 3986 excludes"
        end

        # Keeps the origin of the base URL. Gets another one in a child process, which needs origins of its own, and
        # after {OriginRegistry} has dropped this one, because it was unused for long.
        def base_origin
          return @base_origin if @base_origin && !@base_origin.retired? && @process == Process.pid

          @process = Process.pid
          @base_origin = origin_of(@base)
        end

        def origin_of(uri)
          scheme = uri.scheme.downcase
          host = uri.hostname.downcase
          OriginRegistry.origin([scheme, host, uri.port, @settings]) { make(scheme, host, uri) }
        end

        def make(scheme, host, uri)
          authority = uri.port == USUAL_PORTS.fetch(scheme) ? uri.host.downcase : "#{uri.host.downcase}:#{uri.port}"
          proxy = @settings.deny_private ? nil : Proxy.for(@settings.proxy, scheme, host, uri.port)
          OriginPool.new(scheme, authority, @settings, proxy, Dialer.new(scheme, host, uri.port, @settings, proxy))
        end

        def own_fields(uri)
          credentials = Fields.credentials(uri) and { "Authorization" => credentials }
        end
      end
    end
  end
end
