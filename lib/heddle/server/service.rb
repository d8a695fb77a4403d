# frozen_string_literal: true

module Heddle
  class Server
    # Serves connections: what runs in a fiber from the moment a connection is readable until it waits again.
    class Service
      # @return [HTTP::H1::Engine] what the sockets speak
      attr_reader :engine

      # @param app [#call]
      # @param configuration [Configuration]
      # @param log [Log]
      def initialize(app, configuration, log)
        @log = log
        @engine = HTTP::H1::Engine.new(configuration.http, on_refusal: log.method(:refused))
        @handler = Rack::Handler.new(app, Rack::EnvBuilder.new(errors: log.errors), log)
        @fibers = {}.compare_by_identity
        @on_idle = nil
      end

      # @param exchange [HTTP::H1::Exchange]
      # @return [void]
      def call(exchange)
        fiber = Fiber.current
        @fibers[fiber] = true
        @handler.call(exchange)
        @log.request(exchange) if @log.access?
      ensure
        @fibers.delete(fiber)
        @on_idle&.call if @fibers.empty?
      end

      # @return [#call, nil] called when the last running request has been answered
      attr_writer :on_idle

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
    end
  end
end
