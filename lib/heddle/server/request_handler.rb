# frozen_string_literal: true

module Heddle
  class Server
    # Builds the chain of objects that serves a request: the engine, the timeout and other wrappers of the application,
    # and the Rack handler. Each request is served in its own fiber; in modes thread and single, a thread runs the
    # application for it.
    class RequestHandler
      # @return [HTTP::Engine] the HTTP service, which {Net::Sockets} uses for new connections
      attr_reader :engine

      # @param app [#call]
      # @param configuration [Configuration]
      # @param log [Log]
      # @param runners [RunnerThreads, nil] the threads that run the application; nil: the loop's fibers run it
      def initialize(app, configuration, log, runners: nil)
        @log = log
        paths = configuration.account
        Account.switch(paths.any?)
        @leases = runners.nil? && Ractor.current == Ractor.main
        @access = log.access?
        proxies = configuration.trusted_networks
        @engine = HTTP::Engine.new(configuration.http, on_rejection: log.method(:rejected), proxies:,
                                                       on_event: log.method(:event),
                                                       body_folder: TemporaryFolder.find || Etc.systmpdir,
                                                       stream_bodies: configuration.streamed,
                                                       health_paths: health_paths(configuration),
                                                       http2: configuration.http2)
        @recorder = make_recorder(configuration)
        app = RequestTimeout.new(app, configuration.request_timeout, log) if configuration.request_timeout.positive?
        app = ServerTiming.new(app, paths - ["on"]) if paths.any? && paths != ["on"]
        app = RequestId.new(app, proxies) if configuration.request_id
        env_builder = Rack::EnvBuilder.new(log.errors, proxies)
        options = { early_hints: configuration.early_hints, allowed_origins: configuration.web_socket_origins,
                    websocket_deflate: configuration.http.websocket_deflate }
        @handler = make_handler(app, env_builder, configuration.cancel_on_disconnect, runners, options)
        @engine.websocket_loader = @handler.socket_handoff
      end

      # @return [Proc] the block for {Net::Sockets}. It serves a request, which it gets as an HTTP::Exchange
      def to_proc
        proc do |exchange|
          @handler.call(exchange)
        ensure
          Databases.end_leases { |error| @log.failure(exchange, error) } if @leases && Databases.leases
          @log.request(exchange) if @access && !exchange.probe?
          @recorder&.end(exchange)
        end
      end

      private

      # Only the main Ractor can read Rails' configuration.
      def health_paths(configuration)
        paths = configuration.health_paths
        return paths unless Ractor.current == Ractor.main

        configuration.source(:health_paths) == Configuration::Source::DEFAULT ? paths | Rails.silenced_paths : paths
      end

      # The recorder needs the time accounts of requests, and works only in the main Ractor.
      def make_recorder(configuration)
        limit = configuration.slow_request
        return unless limit > 0 && configuration.account.any? && Ractor.current == Ractor.main

        Recorder.new(limit, @log, Recorder::Files.folder(configuration.environment))
      end

      def make_handler(app, env_builder, methods, runners, options)
        return Rack::ThreadHandler.new(app, env_builder, @log, runners, **options) if runners
        return Rack::Handler.new(app, env_builder, @log, **options) if methods == :off

        Rack::CancellingHandler.new(app, env_builder, @log, methods:, **options)
      end
    end
  end
end
