# frozen_string_literal: true

require "securerandom"

module Heddle
  class Server
    # Gives every request a name, which is in the logs, in the answer (`x-request-id`) and where Rails and other
    # applications look for it (`HTTP_X_REQUEST_ID`). A name that the request brings counts only when it comes from this
    # machine, where a proxy has set it: a client that names its own requests could make its traces look like others'.
    class RequestId
      KEY = "HTTP_X_REQUEST_ID"
      NAME = "x-request-id"
      # What is taken over; anything else is replaced.
      ALLOWED = %r{\A[\w\-.+/=@:]{1,200}\z}
      TRUSTED = /\A(?:127\.|::1\z|unix\z)/
      private_constant :KEY, :NAME, :ALLOWED, :TRUSTED

      # @param app [#call]
      def initialize(app)
        @app = app
      end

      # @param env [Hash{String => Object}]
      # @return [Array] what the application returned, with the name among the headers
      def call(env)
        id = id_of(env)
        env[KEY] = id
        env["rack.hijack"].request_id = id # it is the exchange
        answer = @app.call(env)
        return answer unless answer.is_a?(Array) && answer.size == 3

        status, headers, body = answer
        # The Hash may be the application's own, for all its answers.
        headers = headers.merge(NAME => id) if headers.is_a?(Hash) && headers.none? do |name, _|
          name.to_s.casecmp?(NAME)
        end
        [status, headers, body]
      end

      private

      def id_of(env)
        given = env[KEY]
        return given if given && ALLOWED.match?(given) && TRUSTED.match?(env["REMOTE_ADDR"].to_s)

        # Its first half is the time (RFC 9562, 5.7): sorted by name is sorted by time.
        SecureRandom.uuid_v7
      end
    end
  end
end
