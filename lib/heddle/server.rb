# frozen_string_literal: true

require "heddle"
require "heddle/net/sockets"
require "heddle/rack"

module Heddle
  # Serves a Rack application over HTTP/1.1, in one process and one loop, each request in a fiber of its own.
  #
  #     Heddle::Server.new.run(->(env) { [200, {}, ["hello"]] })
  class Server
    autoload :AccessLine, "heddle/server/access_line"
    autoload :Admission, "heddle/server/admission"
    autoload :AdmissionPolicy, "heddle/server/admission_policy"
    autoload :AppLoader, "heddle/server/app_loader"
    autoload :Bind, "heddle/server/bind"
    autoload :BootError, "heddle/server/boot_error"
    autoload :Configuration, "heddle/server/configuration"
    autoload :ConfigurationError, "heddle/server/configuration_error"
    autoload :Cores, "heddle/server/cores"
    autoload :Hooks, "heddle/server/hooks"
    autoload :LineBuffer, "heddle/server/line_buffer"
    autoload :Listener, "heddle/server/listener"
    autoload :Log, "heddle/server/log"
    autoload :Memory, "heddle/server/memory"
    autoload :Option, "heddle/server/option"
    autoload :OptionPage, "heddle/server/option_page"
    autoload :Options, "heddle/server/options"
    autoload :Pidfile, "heddle/server/pidfile"
    autoload :Service, "heddle/server/service"
    autoload :Signals, "heddle/server/signals"
    autoload :TCPBind, "heddle/server/tcp_bind"
    autoload :Units, "heddle/server/units"
    autoload :UnixBind, "heddle/server/unix_bind"

    # @return [Configuration]
    attr_reader :configuration
    # @return [HTTP::H1::Engine, nil] what counts requests and how long they took, while the server runs
    attr_reader :engine

    # @param configuration [Configuration]
    # @param log [Log]
    def initialize(configuration = Configuration.new, log: Log.new(access: configuration.access_log))
      @configuration = configuration
      @log = log
      @listeners = []
      @stopping = false
      @main = @scheduler = @sockets = @engine = @admission = nil
    end

    # Opens the sockets, so that a port that is taken is known before the application is loaded.
    # @return [Array<String>] where the server is reached
    # @raise [BootError]
    def open
      check_selector
      @configuration.binds.each { |bind| @listeners.concat(bind.open(@configuration.backlog)) }
      urls
    rescue BootError
      close_listeners
      raise
    end

    # @return [Array<String>] where the server is reached, for a person
    def urls = @listeners.map(&:url).uniq

    # Serves until {#stop}, or a signal where `signals` says so, and until the requests that run then are answered.
    #
    # @param app [#call] a Rack 3 application
    # @param signals [Boolean] whether INT and TERM stop the server: the first one in order, a second INT at once
    # @yield once, when requests are accepted
    # @return [Boolean] whether every request was answered
    # @raise [BootError]
    def run(app, signals: false, &ready)
      open if @listeners.empty?
      Rails.start(fibers: @configuration.mode == :fiber) if defined?(::Rails)
      Heddle.run(selector: @configuration.selector, name: "server") { serve(app, signals, &ready) }
    ensure
      close_listeners
    end

    # Stops accepting, closes idle connections and lets running requests finish. May be called from any thread.
    # @param now [Boolean] whether to cancel running requests at once
    # @return [void]
    def stop(now: false)
      @stopping = now || @stopping == :now ? :now : :drain
      main = @main
      @scheduler.unpark(main) if main
    end

    # Has it been told to stop? An answer that goes on for as long as its client listens ends when it sees this.
    # @return [Boolean]
    def stopping? = @stopping != false

    # @return [Hash{Symbol => Numeric, Boolean, nil}, nil] what there is now: `connections`, of them `idle` and
    #   `running`, those `accepted` so far, whether more are accepted (`accepting`), `fibers` of the loop, and what
    #   {Admission#statistics} says; nil while the server does not run
    def statistics
      sockets = @sockets or return
      { connections: sockets.connections, idle: sockets.idle, running: sockets.running, accepted: sockets.accepted,
        accepting: sockets.accepting?, fibers: @scheduler.fiber_count, **@admission.statistics }
    end

    private

    # Now, and not at some request for which there may be no descriptor left.
    def load_everything
      [HTTP, HTTP::H1, Rack, Server].each do |namespace|
        namespace.constants.each { |name| namespace.const_get(name) if namespace.autoload?(name) }
      end
    end

    def serve(app, signals)
      load_everything
      @scheduler = scheduler = Fiber.scheduler
      @main = Fiber.current
      service = Service.new(app, @configuration, @log)
      @engine = service.engine
      sockets = open_sockets(scheduler, service)
      admission = @admission = Admission.new(sockets, @configuration, @log)
      @sockets = sockets
      @log.start
      admission.start
      watch = Signals.new(self, @log).watch if signals
      yield if block_given?
      Rails.tell_connections(@log, @configuration.workers) if defined?(::ActiveRecord::Base)
      scheduler.park until @stopping
      drain(scheduler, sockets, service)
    ensure
      @main = @sockets = @engine = nil
      watch&.cancel
      admission&.stop
      sockets&.close
      @log.stop
    end

    def open_sockets(scheduler, service)
      limit = @configuration.max_connections
      limit = [Process.getrlimit(Process::RLIMIT_NOFILE).first - 64, 16].max if limit == 0
      sockets = Net::Sockets.new(scheduler, idle_timeout: @configuration.http.idle_timeout.to_f,
                                            max_connections: limit,
                                            protocol: service.engine) { |exchange| service.call(exchange) }
      @listeners.each { |listener| sockets.listen(listener.io) }
      sockets
    end

    def drain(scheduler, sockets, service)
      service.engine.drain
      sockets.stop_listening
      close_listeners
      sockets.shutdown_idle
      sockets.wake_at_end(@main)
      deadline = now + @configuration.stop_timeout
      until sockets.ended? || @stopping == :now || (left = deadline - now) <= 0
        scheduler.park(left)
      end
      return true if sockets.ended?

      running = sockets.serving
      unanswered = running.size + sockets.waiting
      sockets.end_queue
      @log.notice("stopping with #{unanswered} #{unanswered == 1 ? "request" : "requests"} unanswered" \
                  "#{" after #{@configuration.stop_timeout} s" unless @stopping == :now}")
      running.each { |fiber| scheduler.interrupt(fiber, Cancelled.new("the server stops")) }
      false
    end

    def check_selector
      Selector.find(@configuration.selector, Options::BY_NAME.fetch(:selector).flag) if @configuration.selector
    rescue ArgumentError => e
      raise BootError, e.message
    end

    def close_listeners
      @listeners.each(&:close)
      @listeners = []
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
