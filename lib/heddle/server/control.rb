# frozen_string_literal: true

module Heddle
  class Server
    # Tells what the server does, and tells it what to do: metrics, health and commands over HTTP, on sockets of their
    # own. They are served by a loop of its own on a thread of its own and know no admission, so that an application
    # that is overloaded, or computes in Ruby without an end, does not keep an operator from looking.
    class Control
      Autoloads.add(self, "heddle/server/control")

      # A command that this server can't follow.
      class RejectedError < StandardError
        include Heddle::Error
      end

      # Seconds that a recording may take.
      RECORDED = 0.1..60.0
      # Limits of the requests to it: how many at once, from any address, and their time. Clients that say nothing don't
      # keep others from looking: at the limit those that have been silent longest are closed.
      CONNECTIONS = 64
      LIMITS = { body_limit: 65_536, head_timeout: 5, idle_timeout: 30, write_timeout: 10 }.freeze
      # What a client waits for, and ends by leaving. Other requests are answered also when it has closed its side.
      WAITING = %r{\A/(?:record|ended)\b}
      # Bytes of a message to be published, from a client that may give commands.
      MESSAGE = 256 << 20
      # Seconds that its end may take, and of them those that running requests have to be answered.
      STOP_TIMEOUT = 2
      LAST_WORDS = 1
      # A ring's memory would be too much for a request now and then.
      SELECTOR = (:epoll if Selector.built.include?(:epoll))
      # Seconds between two attempts to take over what another server still has.
      POLL_INTERVAL = 0.5
      private_constant :CONNECTIONS, :LIMITS, :WAITING, :MESSAGE, :STOP_TIMEOUT, :LAST_WORDS, :SELECTOR, :POLL_INTERVAL

      # Opens the sockets that the configuration names.
      #
      # @param configuration [Configuration]
      # @param source [Alone] answers status requests and runs commands
      # @param log [Log]
      # @param succeeding [Boolean] whether another server has the addresses, which ends when this one serves
      # @return [Control, nil] nil: there is none
      # @raise [BootError] when an address that the user has named can't be had
      def self.open(configuration, source, log, succeeding: false)
        const_get(:App) # loaded here: a library that it needs and that is missing stops the start, not a thread
        later = []
        listeners = Address.all(configuration.control).flat_map do |address|
          address.open(succeeding:)
        rescue BootError => e
          if succeeding then later << address
          elsif address.default? then log.event(:control_socket_missing, reason: e.message)
          else raise
          end
          []
        end
        new(listeners, source, log, later:) unless listeners.empty? && later.empty?
      end

      # Answers while the block runs.
      #
      # @param configuration [Configuration]
      # @param server [Server] the only one of this process
      # @param log [Log]
      # @yieldreturn [Boolean, nil] whether every request was answered
      # @return [Boolean, nil] the same
      # @raise (see open)
      def self.beside(configuration, server, log)
        control = Control.open(configuration, Alone.new(server, log), log)
        control&.start
        answered = yield
      ensure
        control&.finish(answered)
      end

      # @param listeners [Array<Listener>]
      # @param source [Alone]
      # @param log [Log]
      # @param later [Array<Address>] that another server still has
      def initialize(listeners, source, log, later: [])
        @listeners = listeners
        @later = later
        @source = source
        @log = log
        @stopping = false
      end

      # @return [Array<String>] where it is reached, for a person
      def urls = @listeners.map(&:url)

      # The server has ended: clients that wait for that are answered, and the sockets closed.
      # @param answered [Boolean, nil] whether every request was answered
      # @return [void]
      def finish(answered)
        result = @source.shutdown_result
        result.resolve(answered ? true : false) unless result.settled?
        stop
      end

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
        @thread&.join(STOP_TIMEOUT)
        @listeners.each(&:close)
      end

      # In a child process: closes the parent's resources.
      # @return [void]
      def close_in_child = @listeners.each(&:release)

      private

      def run(ready)
        Heddle.run(name: "control", selector: SELECTOR) do
          @scheduler = scheduler = Fiber.scheduler
          Native.leave_unreported(scheduler)
          @main = Fiber.current
          sockets = @listeners.map { |listener| sockets_for(scheduler, listener) }
          succeed(scheduler, sockets) unless @later.empty?
          ready << true
          scheduler.park until @stopping
          answer_rest(scheduler, sockets)
        ensure
          @main = nil
          sockets&.each(&:close)
        end
      rescue StandardError => e
        @log.event(:control_socket_failed, error: "#{e.class}: #{e.message}", place: e.backtrace&.first)
      ensure
        ready << true
      end

      # Clients that wait for the server's end hear of it.
      def answer_rest(scheduler, sockets)
        deadline = MonotonicClock.now + LAST_WORDS
        sockets.each do |one|
          one.stop_listening
          one.shutdown_idle
          one.wake_at_end(Fiber.current)
        end
        until sockets.all?(&:ended?) || (left = deadline - MonotonicClock.now) <= 0
          scheduler.park(left)
        end
      end

      # Takes what another server has had, once it has ended.
      def succeed(scheduler, sockets)
        Heddle.async(name: "succession", background: true) do
          until @later.empty?
            sleep(POLL_INTERVAL)
            found = @later.flat_map { |address| try(address) }
            sockets.concat(found.map { |listener| sockets_for(scheduler, listener) })
            @listeners.concat(found)
          end
        end
      end

      def try(address)
        address.open.tap { @later.delete(address) }
      rescue BootError
        []
      end

      # TCP clients are not authenticated; the mode of the unix socket decides who may open it.
      def sockets_for(scheduler, listener)
        trusted = listener.port.nil?
        limits = trusted ? { **LIMITS, body_limit: MESSAGE } : LIMITS
        app = App.new(@source, commands: trusted)
        engine = HTTP::Engine.new(HTTP::Limits.new(**limits))
        env_builder = Rack::EnvBuilder.new(@log.errors, nil)
        handler = Rack::Handler.new(app, env_builder, @log)
        waiting = Rack::CancellingHandler.new(app, env_builder, @log, methods: :all)
        proxies = Net::Networks.new(["all"])
        sockets = Net::Sockets.new(scheduler, max_connections: CONNECTIONS, service: engine, proxies:) do |exchange|
          (WAITING.match?(exchange.target) ? waiting : handler).call(exchange)
        end
        sockets.listen(listener.io, own_user: listener.own_user)
        sockets
      end
    end
  end
end
