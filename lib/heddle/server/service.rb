# frozen_string_literal: true

module Heddle
  class Server
    # Serves connections: what runs in a fiber from the moment a connection is readable until it waits again.
    class Service
      # @return [#call, nil] called when the last running connection has been served
      attr_writer :on_idle

      # @param app [#call]
      # @param configuration [Configuration]
      # @param log [Log]
      def initialize(app, configuration, log)
        @app = app
        @log = log
        @engine = HTTP::H1::Engine.new(configuration.http, on_refusal: log.method(:refused))
        @env_builder = Rack::EnvBuilder.new(errors: log.errors)
        @fibers = {}.compare_by_identity
        @on_idle = nil
      end

      # @param connection [Object] of Heddle::Net, readable
      # @return [void]
      def call(connection)
        fiber = Fiber.current
        @fibers[fiber] = true
        server = HTTP::H1::ServerConnection.new(connection, @engine)
        server.serve { |head, body| exchange(server, head, body) }
      rescue ClientGone
        # Said where it happened.
      ensure
        @fibers.delete(fiber)
        @on_idle&.call if @fibers.empty?
      end

      # @return [Integer] connections that are being served
      def running = @fibers.size

      # Every answer from now on is its connection's last.
      def drain = @engine.drain

      # Cancels all running requests.
      # @return [void]
      def cancel
        scheduler = Fiber.scheduler
        @fibers.each_key { |fiber| scheduler.interrupt(fiber, Cancelled.new("the server stops")) }
      end

      private

      def exchange(server, head, body)
        return Rack::Exchange.new(server, head, body, @log).run(@app, @env_builder) unless @log.access?

        started = now
        exchange = Rack::Exchange.new(server, head, body, @log)
        begin
          exchange.run(@app, @env_builder)
        ensure
          @log.request(exchange, now - started)
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
