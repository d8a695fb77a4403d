# frozen_string_literal: true

require "faraday"
require "heddle/http/client"

module Heddle
  # Requests and responses on the wire.
  module HTTP
    # A Faraday adapter that sends requests with {Client}, which keeps connections open between requests. `require
    # "heddle"` does not load it:
    #
    #     require "heddle/http/faraday"
    #
    #     Faraday.default_adapter = :heddle
    #     Faraday.new("https://api.example", request: { open_timeout: 2, timeout: 10 })
    #
    # Redirects, retries and cookies are left to Faraday's middleware.
    class FaradayAdapter < ::Faraday::Adapter
      # Maps the errors of {Client} to Faraday's. The first match counts.
      ERRORS = { Client::ConnectTimeoutError => ::Faraday::ConnectionFailed,
                 Client::TLSTimeoutError => ::Faraday::ConnectionFailed,
                 Client::TimeoutError => ::Faraday::TimeoutError, Client::TLSError => ::Faraday::SSLError,
                 Client::Error => ::Faraday::ConnectionFailed }.freeze
      # Maps Faraday's time limits to the phases of a request that they limit, see {Client#initialize}.
      PHASES = { open_timeout: %i[connect tls], write_timeout: %i[write], read_timeout: %i[first_byte read],
                 timeout: %i[connect tls write first_byte read] }.freeze
      # Fields that Faraday's multipart middleware may set. {Client} rejects them, because it sets them itself.
      FRAMING = %w[content-length transfer-encoding].freeze
      # Fields that no longer apply to a body that {Client} has decompressed.
      CODING = %w[content-encoding content-length].freeze
      # Spellings of TLS 1.3 as the minimum version. Other minimum versions are ignored: the client never uses a
      # version below TLS 1.2.
      NEWEST_TLS = %w[TLS1_3 TLSv1_3 772].freeze
      private_constant :ERRORS, :PHASES, :FRAMING, :CODING, :NEWEST_TLS

      # @param options [Hash] options of {Client#initialize}
      def initialize(app = nil, options = {}, &)
        super
        @clients = {}
      end

      # Called by Faraday.
      def call(env)
        super
        env.request.stream_response? ? stream(env) : whole(env)
        @app.call(env)
      rescue Client::Error => e
        raise ERRORS.find { |ours, _| e.is_a?(ours) }.last, e
      end

      private

      def whole(env)
        response = client(env).request(env.method.name.upcase, env.url.to_s, **details(env))
        save_response(env, response.status, response.body, headers(env, response), nil)
      end

      # Passes the pieces of the response's body to the caller as they arrive.
      def stream(env)
        client(env).stream(env.method, env.url.to_s, **details(env)) do |response|
          save_response(env, response.status, "", headers(env, response), nil, finished: false)
          env.stream_response { |&give| response.each(&give) }
        end
        env.response&.finish(env) unless env.parallel?
      end

      # Returns the response's header fields. Omits Content-Encoding and Content-Length if the response was decoded and
      # the request has an Accept-Encoding field: middleware that has set Accept-Encoding would otherwise decompress the
      # body again.
      def headers(env, response)
        asked = env.request_headers.any? { |name, _| name.casecmp?("accept-encoding") }
        asked && response.decoded? ? response.headers.except(*CODING) : response.headers
      end

      def details(env)
        headers = env.request_headers.to_h.reject { |name, _| FRAMING.include?(name.downcase) }
        body = env.body
        body = nil if body.respond_to?(:empty?) && body.empty?
        { headers: headers, body: body, timeout: limits(env.request) }
      end

      def limits(options)
        PHASES.to_a.reverse.each_with_object({}) do |(name, phases), limits|
          phases.each { |phase| limits[phase] = options[name] } if options[name]
        end
      end

      def client(env)
        proxy = env.request.proxy && proxy_url(env.request.proxy)
        key = [env.ssl.to_hash, proxy]
        @clients[key] ||= Client.new(redirects: 0, proxy: proxy, tls: tls(env.ssl), **@connection_options)
      end

      # Faraday keeps the proxy's user name and password in the proxy's URL, or beside it.
      def proxy_url(proxy)
        return proxy.uri&.to_s unless proxy.uri && proxy.user

        proxy.uri.dup.tap do |uri|
          uri.userinfo = [proxy.user, proxy.password.to_s].map { |part| URI.encode_uri_component(part) }.join(":")
        end.to_s
      end

      def tls(ssl)
        trusting = ssl.verify == false || ssl.verify_mode&.zero? # VERIFY_NONE
        options = { ca: ssl.ca_file || ssl.ca_path, verify: trusting ? false : nil,
                    cert: pem(Array(ssl.client_cert)), key: pem(Array(ssl.client_key)),
                    minimum: NEWEST_TLS.include?(ssl.min_version.to_s) ? "1.3" : nil }.compact
        options.empty? ? nil : options
      end

      # Joins certificates or keys to one PEM text. Strings are PEM already.
      def pem(parts)
        parts.map { |part| text_of(part) }.join if parts.any?
      end

      # An Ed25519 key has no `to_pem`.
      def text_of(part)
        name = %i[to_pem private_to_pem].find { |one| part.respond_to?(one) }
        name ? part.public_send(name) : part
      end
    end

    ::Faraday::Adapter.register_middleware(heddle: FaradayAdapter)
  end
end
