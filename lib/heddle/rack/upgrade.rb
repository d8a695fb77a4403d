# frozen_string_literal: true

require "digest/sha1"
require "heddle/rack/permessage_deflate" # in Ruby 3.3 only the main Ractor can load files

module Heddle
  module Rack
    # Upgrades a request to a WebSocket (RFC 6455, section 4.2), or to a stream of server-sent events that a handler
    # writes. Called when the application has set `env["rack.upgrade"]`.
    class Upgrade
      # A constant that is hashed with the client's key for the field Sec-WebSocket-Accept (RFC 6455, section 1.3).
      GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
      KEY = %r{\A[A-Za-z0-9+/]{22}==\z}
      VERSION = "13"
      private_constant :GUID, :KEY, :VERSION

      # @param callbacks [#call] see {SocketCallbacks#call}
      # @param allowed_origins [Array<String>, nil] the origins whose pages may open a WebSocket; nil: only the server's
      #   own origin
      # @param deflate [Boolean] whether messages may be compressed
      def initialize(callbacks, allowed_origins, deflate: false)
        @callbacks = callbacks
        @deflate = deflate
        @allowed_origins = allowed_origins
      end

      # @param exchange [HTTP::Exchange]
      # @param env [Hash]
      # @param handler [Object]
      # @param headers [Hash] the headers that the application has returned
      # @return [void]
      def call(exchange, env, handler, headers)
        return begin_events(exchange, handler, headers) if env["rack.upgrade?"] == :sse

        violation = violation_of(env)
        return reject(exchange, *violation) if violation

        deflate = PermessageDeflate.answer_to(env["HTTP_SEC_WEBSOCKET_EXTENSIONS"]) if @deflate
        fields = own_fields(headers)
        fields["sec-websocket-extensions"] = deflate if deflate
        start(exchange.response, env, fields)
        exchange.response.flush
        exchange.response.upgrade(handler, @callbacks, deflate ? :deflated : :plain)
      end

      private

      # Over HTTP/1.1, the response has no length, and ends with the connection.
      def begin_events(exchange, handler, headers)
        exchange.response.start(200, { **EventStream::FIELDS, **own_fields(headers) }, until_close: true)
        exchange.response.flush
        exchange.response.upgrade(handler, @callbacks, :events)
      end

      # Over HTTP/2, the client sends no key, and the response has the status 200 (RFC 8441, section 5).
      def start(response, env, fields)
        return response.start(200, fields) if extended_connect?(env)

        accept = ::Digest::SHA1.base64digest(env["HTTP_SEC_WEBSOCKET_KEY"] + GUID)
        response.start(101, fields.merge("sec-websocket-accept" => accept), protocol: "websocket")
      end

      def extended_connect?(env) = env["REQUEST_METHOD"] == "CONNECT"

      HANDSHAKE = %w[transfer-encoding sec-websocket-accept sec-websocket-extensions upgrade].freeze
      private_constant :HANDSHAKE

      # Leaves out fields about the content, because a handshake has none, and the fields that the handshake itself
      # sets.
      def own_fields(headers)
        headers.reject do |name, _|
          name = name.downcase
          name.start_with?("content-", "rack.") || HANDSHAKE.include?(name)
        end.to_h
      end

      # @return [Array, nil] status, header fields and text of the rejection
      def violation_of(env)
        unless env["HTTP_SEC_WEBSOCKET_VERSION"] == VERSION
          return [426, { "sec-websocket-version" => VERSION },
                  "only version #{VERSION} of the WebSocket protocol is supported"]
        end
        unless extended_connect?(env) || KEY.match?(env["HTTP_SEC_WEBSOCKET_KEY"])
          return [400, {}, "the field Sec-WebSocket-Key is malformed"]
        end

        origin = env["HTTP_ORIGIN"]
        return if origin.nil? || env["heddle.origin_checked"] || allowed?(origin, env)

        [403, {}, "pages of the origin #{origin[0, 200].inspect} may not open a WebSocket here (allowed_origins)"]
      end

      # In a browser, a page can't forge Origin. Programs other than browsers may send any Origin, or none: the check
      # does not protect from them.
      def allowed?(origin, env)
        return @allowed_origins.include?(origin) || @allowed_origins.include?("*") if @allowed_origins

        origin.casecmp?("#{env["rack.url_scheme"]}://#{env["HTTP_HOST"]}")
      end

      def reject(exchange, status, fields, text)
        text += "\n"
        exchange.response.start(status, { "content-type" => "text/plain", **fields }, length: text.bytesize)
        exchange.response.write(text)
        exchange.response.finish
      end
    end
  end
end
