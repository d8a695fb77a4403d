# frozen_string_literal: true

require "securerandom"

module Heddle
  class Server
    # Assigns every request an ID. It appears in the logs, in the response (`x-request-id`), and in the env
    # (`HTTP_X_REQUEST_ID`), where Rails and other applications expect it. An ID in the request is kept only if it comes
    # from a trusted proxy. Other clients could choose the ID of another client's request and so confuse the logs.
    class RequestId
      KEY = "HTTP_X_REQUEST_ID"
      NAME = "x-request-id"
      # Matches an acceptable ID. Any other ID in a request is replaced.
      ALLOWED = %r{\A[\w\-.+/=@:]{1,200}\z}
      private_constant :KEY, :NAME, :ALLOWED

      # @param app [#call]
      # @param proxies [Net::Networks] the networks of the trusted proxies
      def initialize(app, proxies)
        @app = app
        @proxies = proxies
      end

      # @param env [Hash{String => Object}]
      # @return [Array] the application's response, with the ID as a field
      def call(env)
        exchange = env["rack.hijack"]
        env[KEY] = exchange.request_id = id = id_of(env[KEY], exchange)
        add(@app.call(env), id)
      end

      private

      # Trusts only the address at the other end of the connection, because a forwarded address could be forged.
      def id_of(given, exchange)
        peer = exchange.remote_address if given && ALLOWED.match?(given)
        return given if peer && @proxies.include?(peer)

        # A UUID that begins with the time (RFC 9562, section 5.7), so that sorting IDs sorts requests by time.
        SecureRandom.uuid_v7
      end

      # Keeps an ID that the application has set itself.
      def add(response, id)
        headers = response[1] if response.is_a?(Array) && response.size == 3
        return response if !headers.is_a?(Hash) || headers.any? { |one, _| one.to_s.casecmp?(NAME) }

        # The Hash is copied, because the application may use the same one for all responses.
        [response[0], headers.merge(NAME => id), response[2]]
      end
    end
  end
end
