# frozen_string_literal: true

require "securerandom"

module Heddle
  class Server
    # Assigns every request an ID, for the logs, the response (`x-request-id`), and Rails and other applications
    # (`HTTP_X_REQUEST_ID`). An ID in the request is kept only if it comes from a trusted proxy: a client that chose its
    # IDs could make its traces look like others'.
    class RequestId
      KEY = "HTTP_X_REQUEST_ID"
      NAME = "x-request-id"
      # An acceptable id; any other is replaced.
      ALLOWED = %r{\A[\w\-.+/=@:]{1,200}\z}
      private_constant :KEY, :NAME, :ALLOWED

      # @param app [#call]
      # @param proxies [Net::Networks] networks of trusted senders
      def initialize(app, proxies)
        @app = app
        @proxies = proxies
      end

      # @param env [Hash{String => Object}]
      # @return [Array] the application's response, with the id among the headers
      def call(env)
        exchange = env["rack.hijack"]
        env[KEY] = exchange.request_id = id = id_of(env[KEY], exchange)
        add(@app.call(env), id)
      end

      private

      # Compares the address of the connection, not a forwarded one, with the trusted networks.
      def id_of(given, exchange)
        peer = exchange.remote_address if given && ALLOWED.match?(given)
        return given if peer && @proxies.include?(peer)

        # A UUID whose first half is the time (RFC 9562, 5.7), so that sorting IDs sorts by time.
        SecureRandom.uuid_v7
      end

      # Keeps an ID that the application has set itself.
      def add(response, id)
        headers = response[1] if response.is_a?(Array) && response.size == 3
        return response if !headers.is_a?(Hash) || headers.any? { |one, _| one.to_s.casecmp?(NAME) }

        # Copied, because the application may use the same Hash for all responses.
        [response[0], headers.merge(NAME => id), response[2]]
      end
    end
  end
end
