# frozen_string_literal: true

require "heddle/runtime"
require "heddle/net/sockets"
require "heddle/options"
require "heddle/rack"
require "etc"
require "json"
require "socket"

module Heddle
  # Serves a Rack application over HTTP/1.1 and HTTP/2, in one process. By default one loop runs each request in a
  # fiber; the option `mode` can change that ({Modes}).
  #
  #     Heddle::Server.new.run(->(env) { [200, {}, ["hello"]] })
  #
  # @api private
  class Server
    Autoloads.add(self, "heddle/server")

    ConfigurationError = Options::ConfigurationError

    # Constants that {load_everything} leaves out, because only the start of a server, the command line, one of the
    # modes, or applications use them.
    NOT_SERVING = %i[Backend Client ClientSocket DevelopmentChecks Error HandshakeError OptionPage Pidfile SystemdBind
                     UnixBind].freeze
    private_constant :NOT_SERVING

    # Loads all constants that workers and requests need. If they were loaded later, a deployment might have removed the
    # files, no descriptor might be free to open a file, and each worker would have its own copy of the code in memory.
    # @return [void]
    def self.load_everything
      Protection.names.each { |name| Protection.fetch(name) }
      Autoloads.load_constants(HTTP, HTTP::H1, HTTP::H2, Rack, Server, SingleProcess, Modes, Control, Log, Metrics,
                               Recorder, ThreadGuard, Net, Offload, Protection, PubSub, WebSocket, except: NOT_SERVING)
      %i[ClientGoneError EventStream Rails].each { |name| Heddle.const_get(name) }
      Adaptations.const_get(:Isolation)
    end

    # @return [Configuration]
    attr_reader :configuration

    # @param configuration [Configuration]
    # @param log [Log]
    # @param listeners [Listeners] the listening sockets; if it is empty, {#open} adds the configured ones
    # @param scoreboard_slot [Array(Net::Scoreboard, Integer), nil] the scoreboard (shared memory with the load of each
    #   worker) and this worker's index in it; nil: this process is the only one
    # @param reserve [Integer] this worker's rank among the reserve workers (they serve only while all others are
    #   blocked), counted from 1; 0: it is not a reserve worker
    # @param protect [true, String, nil] true: enable all protections, as `heddle protect on` does; a String: enable
    #   none, for this reason; nil: enable those that the option `protect` lists
    # @param handoff_sockets [Array(BasicSocket, BasicSocket), nil] the socket that sends connections to other workers,
    #   and the socket that receives connections from them
    def initialize(configuration = Configuration.new, log: Log.of(configuration), listeners: Listeners.new,
                   scoreboard_slot: nil, reserve: 0, protect: nil, handoff_sockets: nil)
      @configuration = configuration
      @log = log
      @listeners = listeners
      @scoreboard_slot = scoreboard_slot
      @reserve = reserve
      @unprotected = protect == true ? nil : protect || configuration.without_protection
      @protections = Protection::Wanted.new(names_of_protections(all: protect == true))
      @handoff_sockets = handoff_sockets
      @stopping = false
      @stop_deadline = SingleProcess::StopDeadline.new(log)
      @mode = nil
    end

    # Opens the sockets, switches to the user of the option `user`, and opens the memory of pub/sub. Called before the
    # application is loaded, so that a taken port is reported early.
    # @return [Array<String>] the server's URLs
    # @raise [BootError]
    def open
      WorkingFolder.note
      FileSizeLimit.make_writes_fail
      @configuration.check_selector
      @configuration.web_socket_origins
      @configuration.binds.each { |bind| @listeners.concat(bind.open(report: @log.method(:event))) }
      User.become(@configuration)
      @log.event(:temporary_folder_missing) unless TemporaryFolder.find
      @configuration.open_pubsub(@log.method(:event))
      urls
    rescue BootError
      @listeners.close
      raise
    end

    # Closes the sockets of a server that does not run. {#run} closes them itself.
    # @return [void]
    def close = @listeners.close

    # @return [Array<String>] the server's URLs, for display
    def urls = @listeners.map(&:url).uniq

    # @return [Array<Net::TLS::Certificates>] the certificates of all TLS addresses
    def certificates = @listeners.filter_map { |listener| listener.tls&.certificates }.uniq

    # @return [String, nil] why the protections are off; nil: they are on
    attr_reader :unprotected

    # Switches the protections on or off. Offloaded calls that already run are not affected. May be called from any
    # thread.
    # @param reason [String, nil] why the protections are switched off; nil: all are switched on, as `heddle protect on`
    #   does
    # @return [void]
    def protect(reason = nil)
      @unprotected = reason
      Scheduler::Patches.allow unless reason
      @protections.change(names_of_protections(all: true))
    end

    # Forbids Heddle's patches of Ruby if the process has no protections. Otherwise allows them again. Must be called
    # before the first loop of the process.
    # @return [void]
    def prepare_patches
      if @unprotected then Scheduler::Patches.forbid(@unprotected)
      elsif Scheduler::Patches.forbidden then Scheduler::Patches.allow
      end
    end

    # Serves until {#stop} is called or, with `signals`, a signal arrives. Then waits until the running requests are
    # answered.
    #
    # @param app [#call] a Rack 3 application
    # @param signals [Boolean] whether INT, TERM, QUIT and HUP stop the server: the first signal stops it gracefully, a
    #   second INT at once
    # @yield once, when the server accepts requests; the block runs inside an event loop
    # @return [Boolean] whether every request was answered
    # @raise [BootError]
    def run(app, signals: false, &ready)
      open if @listeners.empty?
      Stalls::Switch.since = Float::INFINITY # no request waits during the start, so a stall does not matter
      Events.reporting_to(@log) do
        prepare_process
        @mode = mode = Modes.fetch(@configuration.mode).implementation.new(@configuration, @log)
        join_cluster(mode.servings) if @scoreboard_slot
        mode.stop(now: @stopping == :now) if @stopping
        LoadReport.server = self
        protected do
          mode.run(app, @listeners, ->(&serving) { with_services(signals, &serving) }) { started(&ready) }
        end
      end
    ensure
      LoadReport.server = nil
      Stalls::Switch.since = 0.0
      @stop_deadline.cancel
      @listeners.close
      Scheduler::Patches.reset
    end

    # Serves as {#run} does, in a server with a single process: with signals, hooks and the option `solid_queue`.
    # @yield (see #run)
    # @return (see #run)
    # @raise [BootError]
    def run_alone(app)
      @configuration.hooks.around_worker do
        SolidQueue.beside(@configuration, @log) do |begin_jobs|
          run(app, signals: true) do
            begin_jobs.call
            yield
            @configuration.hooks.run_safely(:on_booted, @log)
          end
        end
      end
    end

    # Stops accepting, closes or hands off idle connections, and lets running requests finish. May be called from any
    # thread.
    # @param now [Boolean] whether to cancel running requests at once
    # @param handoff_sender [BasicSocket, false, nil] the socket over which idle connections are handed off to other
    #   workers; false: the other workers can't receive any; nil: there are no other workers. With false or nil, the
    #   connections that wait in the kernel's queue are accepted and served before the server stops
    # @return [void]
    def stop(now: false, handoff_sender: nil)
      @stopping = now || @stopping == :now ? :now : :drain
      mode = @mode or return
      mode.servings.each { |serving| serving.handoff_sender = handoff_sender }
      mode.stop(now:)
    end

    # Accepts a connection that another worker has handed off. Called in the first loop.
    # @param socket [BasicSocket]
    # @return [Boolean, nil] see {Net::Sockets#accept_handoff}
    def accept_handoff(socket) = @mode.servings.first.accept_handoff(socket)

    # Whether the server is stopping. An endless response should end when this is true.
    # @return [Boolean]
    def stopping? = @stopping != false

    # Whether all loops have begun to close or hand off their connections, because the server is stopping. From then on
    # this worker takes no connections from other workers: the workers that keep serving take them.
    # @return [Boolean]
    def draining? = stopping? && engines.all?(&:draining?)

    # @return [Array<HTTP::Engine>] the engines, which count requests and their durations, one for each serving loop
    def engines = @mode ? @mode.servings.filter_map(&:engine) : []

    # @return [HTTP::Engine, nil] the engine of the first loop
    def engine = engines.first

    # @return [Hash{Symbol => Numeric, Boolean, Symbol, nil}, nil] the sums over all loops; nil while the server does
    #   not run. `connections` counts the open connections; `idle`, `running` and `transit` ({Net::Sockets#transit})
    #   count them by state. `accepted` counts all connections since the start, and `accepting` says whether the server
    #   accepts more. `clients_gone` counts clients that left while their request was queued, or after the application
    #   had returned and before the whole response was sent. Further keys are `handshakes` and `failed_handshakes` (of
    #   TLS), `fibers`, `ticks`, the statistics of {PubSub} with the prefix `pubsub_`, and the keys of
    #   {Admission#statistics}.
    def statistics
      all = @mode ? @mode.servings.filter_map(&:statistics) : []
      all.size < 2 ? all.first : Statistics.sum(all)
    end

    # @return [Array<Hash>] the load of each worker of the server: see {Heddle.stats}
    def loads
      unless @scoreboard_slot
        found = statistics
        return found ? [LoadReport.of_process(found, engines.sum(&:requests))] : []
      end
      board = @scoreboard_slot.first
      slots = (0...board.slots).filter_map { |slot| board.read(slot) }.select { |slot| slot[:pid].positive? }
      slots.sort_by { |slot| slot[:index] }.map { |slot| LoadReport.of_worker(slot) }
    end

    # @return [Array<Array(Fiber, Array, Thread)>] one entry for each running request: its fiber; its method, target,
    #   age in seconds, client, status and scheme; and, if the mode runs the application on other threads than the
    #   loop's, the thread that runs it now, if any. The status is nil until the response is sent, and always nil if
    #   Ruby code sends the response. May be called from any thread.
    def running_requests = @mode ? @mode.servings.flat_map(&:running_requests) : []

    # @return [Symbol, nil] the name of the first loop's selector, such as `:epoll`; nil while the server does not run
    def selector = @mode && @mode.servings.first.selector

    # @return [String] a printable tree of the tasks of each loop, with the place where each one waits. May be called
    #   from any thread.
    def task_tree = @mode ? @mode.servings.map(&:task_tree).join("\n") : "no tasks\n"

    private

    def prepare_process
      prepare_patches
      Adaptations.isolate(@configuration)
      Adaptations.start(@configuration)
      Rails.start(fibers: @configuration.mode == :fiber) if defined?(::ActiveSupport)
      Databases.start(fibers: @configuration.mode == :fiber)
      JIT.enable
      Adaptations.load_async if defined?(::Async::Task) # the application uses the async gem
      DescriptorLimit.lift(ConnectionLimit.descriptors(@configuration))
      Server.load_everything
      Native.lines_are_values = defined?(::Rack) && ::Rack.respond_to?(:release) && ::Rack.release.to_i < 3
      name_libraries if @configuration.possible_protections.include?(:offload)
    end

    # Enables the protections while the block runs, and logs the events that they report. In development, each line also
    # contains the report's advice.
    def protected(&)
      advise = development?
      report = lambda do |found|
        @log.event(found.event, **found.fields, advice: (found.advice if advise))
      end
      Protection.reporting_to(report) { @protections.during(&) }
    end

    def name_libraries
      require "heddle/offload"
      Offload::Switch.name_libraries(allow: @configuration.offload_allow, deny: @configuration.offload_deny)
      Offload::Switch.share_threads(@configuration.worker_count)
    rescue ArgumentError => e
      raise BootError, "#{Options::BY_NAME.fetch(:offload_allow).flag}: #{e.message}"
    end

    # Runs the log, the signal handlers and the guard against exceptions from other threads ({ThreadGuard}) while the
    # block runs. Called once in each process, in the first loop.
    def with_services(signals, &)
      @log.start
      watch = SingleProcess::Signals.new(self, @log, @stop_deadline).watch if signals
      ThreadGuard.new(@log) { stop }.during(&)
    ensure
      watch&.cancel
      @log.stop
    end

    def started
      yield if block_given?
      Stalls::Switch.since = MonotonicClock.now
      return unless first?

      if defined?(::ActiveRecord::Base)
        # `rails server` and rackup serve with one process, even if the configuration sets a number of workers.
        processes = @scoreboard_slot ? [@configuration.worker_count, @configuration.reserve_count] : [1, 0]
        Rails.report_connections(@log, *processes, reloads: !@scoreboard_slot.nil?)
      end
      @listeners.report_trust(@configuration, @log) unless @scoreboard_slot # the master reports it, once
      report_garbage_collection
    end

    # Without full garbage collections, old objects are never freed, and the process grows.
    def report_garbage_collection
      return unless GC.respond_to?(:config) && GC.config[:rgengc_allow_full_mark] == false

      @log.event(:garbage_collection_off)
    end

    # @return [Boolean] whether this process logs facts that are the same in all workers; in a cluster, only worker 0
    #   does. The scoreboard has the worker's number, which may differ from the number of its slot
    def first? = @scoreboard_slot.nil? || @scoreboard_slot.first.read(@scoreboard_slot.last)&.fetch(:index) == 0

    def development? = @configuration.environment == "development"

    def names_of_protections(all:)
      return [] if @unprotected

      all ? @configuration.possible_protections : @configuration.protections
    end

    def join_cluster(servings)
      servings.each { |serving| serving.join_cluster(*@scoreboard_slot, handoff_sockets:, reserve: @reserve) }
    end

    def handoff_sockets
      return unless @configuration.possible_protections.include?(:handoff)

      Handoff.workers = @configuration.worker_count + @configuration.reserve_count
      @handoff_sockets
    end
  end
end
