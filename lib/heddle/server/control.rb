# frozen_string_literal: true

module Heddle
  class Server
    # Tells what the server does, and tells it what to do: metrics, health and commands over HTTP, on sockets of their
    # own. They are served by a loop of its own on a thread of its own and know no admission, so that an application
    # that is overloaded, or computes in Ruby without an end, does not keep an operator from looking.
    class Control
      autoload :Address, "heddle/server/control/address"
      autoload :Alone, "heddle/server/control/alone"
      autoload :App, "heddle/server/control/app"
      autoload :Client, "heddle/server/control/client"

      # What may be asked of it at once, and how long one may take to ask.
      CONNECTIONS = 64
      LIMITS = { body_limit: 65_536, head_timeout: 5, idle_timeout: 30, write_timeout: 10 }.freeze
      # Seconds that its end may take.
      PATIENCE = 2
      private_constant :CONNECTIONS, :LIMITS, :PATIENCE

      # Opens the sockets that the configuration names.
      #
      # @param configuration [Configuration]
      # @param source [Alone] what is told, and what is to be done
      # @param log [Log]
      # @return [Control, nil] nil: there is none
      # @raise [BootError] when an address that the user has named can't be had
      def self.open(configuration, source, log)
        listeners = Address.all(configuration.control).flat_map do |address|
          address.open
        rescue BootError => e
          raise unless address.default?

          log.notice("no control socket: #{e.message}")
          []
        end
        new(listeners, source, log) unless listeners.empty?
      end

      # @param listeners [Array<Listener>]
      # @param source [Alone]
      # @param log [Log]
      def initialize(listeners, source, log)
        @listeners = listeners
        @source = source
        @log = log
        @stopping = false
      end

      # @return [Array<String>] where it is reached, for a person
      def urls = @listeners.map(&:url)

      # Answers from now on, on a thread of its own.
      # @return [void]
      def start
        ready = Thread::Queue.new
        @thread = Thread.new { run(ready) }
        @thread.name = "heddle control"
        @thread.report_on_exception = false
        ready.pop
      end

      # @return [void]
      def stop
        @stopping = true
        main = @main
        @scheduler.unpark(main) if main
        @thread&.join(PATIENCE)
        @listeners.each(&:close)
      end

      private

      def run(ready)
        Heddle.run(name: "control") do
          @scheduler = scheduler = Fiber.scheduler
          @main = Fiber.current
          sockets = open_sockets(scheduler)
          ready << true
          scheduler.park until @stopping
        ensure
          @main = nil
          sockets&.close
        end
      rescue StandardError => e
        @log.notice("the control socket has failed: #{e.class}: #{e.message} (#{e.backtrace&.first})")
      ensure
        ready << true
      end

      # Who comes over TCP may be anybody; who may open the unix socket has been let in by its mode.
      def open_sockets(scheduler)
        trusted, open = @listeners.partition { |listener| listener.port.nil? }
        made = [[trusted, true], [open, false]].map do |listeners, commands|
          sockets_for(scheduler, listeners, App.new(@source, commands:)) unless listeners.empty?
        end
        Group.new(made.compact)
      end

      def sockets_for(scheduler, listeners, app)
        engine = HTTP::H1::Engine.new(HTTP::Configuration.new(**LIMITS))
        handler = Rack::Handler.new(app, Rack::EnvBuilder.new(errors: @log.errors), @log)
        sockets = Net::Sockets.new(scheduler, max_connections: CONNECTIONS, protocol: engine) do |exchange|
          handler.call(exchange)
        end
        listeners.each { |listener| sockets.listen(listener.io) }
        sockets
      end

      Group = Data.define(:sockets) do
        def close = sockets.each(&:close)
      end
      private_constant :Group
    end
  end
end
