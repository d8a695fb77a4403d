# frozen_string_literal: true

module Heddle
  module Rack
    # Makes the env of a request (the Rack specification, "The Request Environment").
    class EnvBuilder
      PROTOCOLS = ["HTTP/1.0", "HTTP/1.1"].freeze
      HOST = "HTTP_HOST"
      COOKIE = "HTTP_COOKIE"

      # The keys of common headers, ready made.
      KEYS = %w[
        accept accept-charset accept-encoding accept-language authorization cache-control connection
        content-encoding cookie date dnt expect forwarded host if-match if-modified-since if-none-match
        if-range if-unmodified-since keep-alive last-event-id max-forwards origin pragma priority
        proxy-authorization range referer sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform sec-fetch-dest
        sec-fetch-mode sec-fetch-site sec-fetch-user sec-gpc sec-websocket-extensions sec-websocket-key
        sec-websocket-protocol sec-websocket-version te trailer transfer-encoding upgrade
        upgrade-insecure-requests user-agent via x-csrf-token x-forwarded-for x-forwarded-host
        x-forwarded-port x-forwarded-proto x-real-ip x-request-id x-requested-with
      ].to_h { |name| [name.b.freeze, "HTTP_#{name.upcase.tr("-", "_")}".freeze] }
       .merge("content-type".b.freeze => "CONTENT_TYPE", "content-length".b.freeze => "CONTENT_LENGTH").freeze
      private_constant :PROTOCOLS, :HOST, :COOKIE, :KEYS

      # What the connection calls the peer of a unix socket, and what it is for the application: who can reach such a
      # socket is on this machine.
      UNIX = "unix"
      LOCAL = "127.0.0.1"
      private_constant :UNIX, :LOCAL

      # @param errors [#puts, #write, #flush] `rack.errors`
      # @param scheme [String] of the connections
      def initialize(errors:, scheme: "http")
        @template = {
          "REQUEST_METHOD" => nil, "SCRIPT_NAME" => "", "PATH_INFO" => nil, "QUERY_STRING" => nil,
          "REQUEST_URI" => nil, "SERVER_NAME" => nil, "SERVER_PORT" => nil, "SERVER_PROTOCOL" => nil,
          "REMOTE_ADDR" => nil, "rack.url_scheme" => scheme, "rack.errors" => errors, "rack.hijack?" => true
        }.freeze
        @ports = Hash.new { |ports, number| ports[number] = (number || 80).to_s.freeze }
      end

      # @param head [HTTP::H1::RequestHead]
      # @param connection [#remote_address, #local_address, #local_port]
      # @return [Hash{String => Object}] what the head says; the rest is the exchange's
      def build(head, connection)
        env = @template.dup
        env["REQUEST_METHOD"] = head.method
        env["PATH_INFO"] = head.path
        env["QUERY_STRING"] = head.query
        env["REQUEST_URI"] = head.target
        env["SERVER_PROTOCOL"] = PROTOCOLS[head.minor]
        address = connection.remote_address
        env["REMOTE_ADDR"] = address == UNIX ? LOCAL : address
        add_fields(env, head.fields)
        add_authority(env, head, connection)
        env["rack.protocol"] = head.upgrade if head.upgrade
        env
      end

      private

      def add_fields(env, fields)
        index = 0
        count = fields.size
        while index < count
          name = fields[index]
          key = KEYS[name] || "HTTP_#{name.upcase.tr("-", "_")}"
          value = fields[index + 1]
          earlier = env[key]
          value = join(key, earlier, value) if earlier
          env[key] = value
          index += 2
        end
      end

      # Lines of one name are a list (RFC 9110, 5.3), cookies one with semicolons (RFC 9113, 8.2.3); two equal
      # lengths, the only ones that come this far, are one.
      def join(key, earlier, value)
        case key
        when COOKIE then "#{earlier}; #{value}"
        when "CONTENT_LENGTH" then value
        else "#{earlier}, #{value}"
        end
      end

      # The host of a target in absolute form counts, and not the Host header (RFC 9112, 3.2.2).
      def add_authority(env, head, connection)
        host = head.host
        port = head.port
        env[HOST] = head.authority if host
        env["SERVER_NAME"] = host.nil? || host.empty? ? own_name(connection.local_address) : host
        env["SERVER_PORT"] = port.nil? || port.empty? ? @ports[connection.local_port] : port
      end

      def own_name(address)
        return "localhost" if address == UNIX

        address.include?(":") ? "[#{address}]" : address
      end
    end
  end
end
