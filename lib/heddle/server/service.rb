# frozen_string_literal: true

module Heddle
  class Server
    # Serves requests: what runs in a fiber from the moment a request is complete until it is answered.
    class Service
      # @return [HTTP::H1::Engine] what the sockets speak
      attr_reader :engine

      # @param app [#call]
      # @param configuration [Configuration]
      # @param log [Log]
      def initialize(app, configuration, log)
        @log = log
        @access = log.access?
        @engine = HTTP::H1::Engine.new(configuration.http, on_refusal: log.method(:refused))
        @handler = Rack::Handler.new(app, Rack::EnvBuilder.new(errors: log.errors), log)
      end

      # @param exchange [HTTP::H1::Exchange]
      # @return [void]
      def call(exchange)
        @handler.call(exchange)
      ensure
        @log.request(exchange) if @access
      end
    end
  end
end
