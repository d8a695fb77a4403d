# frozen_string_literal: true

module Heddle
  class Server
    # The control sockets: metrics, health checks and commands over HTTP. A separate loop on its own thread serves them,
    # without admission. So operators can inspect a server whose application is overloaded or computes endlessly.
    class Control
      Autoloads.add(self, "heddle/server/control")

      # Raised for a command that this server can't carry out.
      class RejectedError < OwnError; end

      # The allowed duration of a recording in seconds.
      RECORDED = 0.1..60.0
      # Limits for each control socket: how many connections it has, and what a request may take. One TCP client may
      # have a quarter of the connections. If a client waits for a connection, those that have been silent for longest
      # are closed, so that silent clients don't block others. Timeouts are in seconds.
      CONNECTIONS = 64
      LIMITS = { body_limit: 65_536, head_timeout: 5, idle_timeout: 30, write_timeout: 10 }.freeze
      # Requests to these paths end when the client disconnects. Other requests are answered even if the client has
      # closed its side.
      WAITING = %r{\A/(?:record|ended)\b}
      # Maximum size in bytes of a request from a client that may give commands, such as a message to publish.
      MESSAGE = 256 << 20
      # Seconds that closing the control sockets may take, and how many of these are for requests that still run.
      STOP_TIMEOUT = 2
      DRAIN_TIMEOUT = 1
      # io_uring is not used, because it needs too much memory for occasional requests.
      SELECTOR = (:epoll if Selector.built.include?(:epoll))
      # Seconds between two attempts to open addresses that another server still uses.
      POLL_INTERVAL = 0.5
      private_constant :CONNECTIONS, :LIMITS, :WAITING, :MESSAGE, :STOP_TIMEOUT, :DRAIN_TIMEOUT, :SELECTOR,
                       :POLL_INTERVAL

      # Opens the control sockets ({Address.all}).
      #
      # @param configuration [Configuration]
      # @param source [SingleProcess, Cluster] answers status requests and runs commands
      # @param log [Log]
      # @param taking_over [Boolean] whether another server uses the addresses, and stops when this one serves
      # @return [Control, nil] nil: there are no control sockets
      # @raise [BootError] when an address that the user has set can't be opened
      def self.open(configuration, source, log, taking_over: false)
        const_get(:App) # loaded now, so that a missing library stops the start instead of failing in a thread
        later = []
        listeners = Address.all(configuration.control).flat_map do |address|
          address.open(taking_over:)
        rescue BootError => e
          if taking_over then later << address
          elsif address.default? then log.event(:control_socket_missing, reason: e.message)
          else raise
          end
          []
        end
        new(listeners, source, log, later:) unless listeners.empty? && later.empty?
      end

      # Serves the control sockets while the block runs.
      #
      # @param configuration [Configuration]
      # @param server [Server] the server of this process
      # @param log [Log]
      # @yieldreturn [Boolean, nil] whether every request was answered
      # @return [Boolean, nil] what the block returns
      # @raise (see open)
      def self.beside(configuration, server, log)
        control = Control.open(configuration, SingleProcess.new(server, log), log)
        control&.start
        answered = yield
      ensure
        control&.finish(answered)
      end

      # @param listeners [Array<Listener>]
      # @param source [SingleProcess, Cluster]
      # @param log [Log]
      # @param later [Array<Address>] addresses to open when the server that this one replaces no longer uses them
      def initialize(listeners, source, log, later: [])
        @listeners = listeners
        @later = later
        @source = source
        @log = log
        @shutdown_result = Promise.new
        @stopping = false
      end

      # @return [Array<String>] the addresses of the control sockets, for display
      def urls = @listeners.map(&:url)

      # Called when the server has stopped. Responds to the clients that wait for its end, and closes the sockets.
      # @param answered [Boolean, nil] whether every request was answered
      # @return [void]
      def finish(answered)
        @shutdown_result.resolve(answered ? true : false)
        stop
      end

      # Starts to serve the control sockets on a separate thread.
      # @return [void]
      def start
        ready = Thread::Queue.new
        @thread = Thread.new { run(ready) }
        @thread.name = "heddle control"
        @thread.report_on_exception = false
        ready.pop
      end

      # Lets running requests finish for DRAIN_TIMEOUT seconds, and closes the control sockets.
      # @return [void]
      def stop
        @stopping = true
        main = @main
        @scheduler.unpark(main) if main
        @thread&.join(STOP_TIMEOUT)
        @listeners.each(&:close)
      end

      # Called in a forked child. Closes its copies of the parent's sockets.
      # @return [void]
      def close_in_child = @listeners.each(&:release)

      private

      def run(ready)
        Heddle.run(name: "control", selector: SELECTOR) do
          @scheduler = scheduler = Fiber.scheduler
          Native.leave_unreported(scheduler)
          @main = Fiber.current
          sockets = @listeners.map { |listener| sockets_for(scheduler, listener) }
          take_over_addresses(scheduler, sockets) unless @later.empty?
          ready << true
          scheduler.park until @stopping
          drain(scheduler, sockets)
        ensure
          @main = nil
          sockets&.each(&:close)
        end
      rescue Exception => e
        @listeners.each(&:close) # otherwise clients connect, and wait forever
        @log.event(:control_socket_failed, error: "#{e.class}: #{e.message}", place: e.backtrace&.first)
      ensure
        ready << true
      end

      # Lets running requests finish, such as those that wait for the server's end.
      def drain(scheduler, sockets)
        deadline = MonotonicClock.now + DRAIN_TIMEOUT
        sockets.each do |one|
          one.stop_listening
          one.shutdown_idle
          one.wake_at_end(Fiber.current)
        end
        until sockets.all?(&:ended?) || (left = deadline - MonotonicClock.now) <= 0
          scheduler.park(left)
        end
      end

      # Starts a task that opens the remaining addresses as soon as the server that uses them has stopped.
      def take_over_addresses(scheduler, sockets)
        Heddle.async(name: "takeover of addresses", background: true) do
          until @later.empty?
            sleep(POLL_INTERVAL)
            found = @later.flat_map { |address| try_to_open(address) }
            sockets.concat(found.map { |listener| sockets_for(scheduler, listener) })
            @listeners.concat(found)
          end
        end
      end

      def try_to_open(address)
        address.open.tap { @later.delete(address) }
      rescue BootError
        []
      end

      # Only clients of a unix socket may give commands: the permissions of its file authenticate them. TCP clients are
      # not authenticated.
      def sockets_for(scheduler, listener)
        trusted = listener.port.nil?
        limits = trusted ? { **LIMITS, body_limit: MESSAGE } : LIMITS
        app = App.new(@source, @shutdown_result, commands: trusted)
        engine = HTTP::Engine.new(HTTP::Limits.new(**limits))
        env_builder = Rack::EnvBuilder.new(@log.errors, nil)
        handler = Rack::Handler.new(app, env_builder, @log)
        waiting = Rack::CancellingHandler.new(app, env_builder, @log, methods: :all)
        sockets = Net::Sockets.new(scheduler, max_connections: CONNECTIONS, service: engine) do |exchange|
          (WAITING.match?(exchange.target) ? waiting : handler).call(exchange)
        end
        sockets.listen(listener.io, own_user: listener.own_user)
        sockets
      end
    end
  end
end
