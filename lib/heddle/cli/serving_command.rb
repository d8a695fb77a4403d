# frozen_string_literal: true

require "heddle/platform"

module Heddle
  module CLI
    # The base class of `heddle serve` and `heddle demo`: reads the flags and the configuration, runs the server in this
    # process or in workers, and reports why it can't start.
    class ServingCommand
      # @param arguments [Array<String>] the arguments after the command's name
      # @param output [IO]
      def initialize(arguments, output)
        @flags = Flags.new(arguments)
        @output = output
        @errors = Server::ErrorStream.new($stderr)
      end

      # @return [Integer] the exit status
      # @raise [UsageError]
      def run
        if @flags.help?
          @output.puts(Help.for(command, *@flags.help_words))
          return DONE
        end
        check_argument_count(@flags.rest)
        @inheritance = Server::Cluster::Inheritance.from_environment
        configuration = Server::Configuration.load(flags: @flags.values, defaults:, file: configuration_file)
        configuration.warnings.each { |text| warn "heddle: #{text}" }
        serve(configuration)
      rescue Server::ConfigurationError, Server::BootError => e
        return FAILED if @inheritance.report_failure(e.message) # the old master logs it
        raise UsageError, e.message if e.is_a?(Server::ConfigurationError)

        warn "heddle: #{e.message}"
        FAILED
      rescue ThreadError, Errno::EAGAIN => e
        message = Server::ProcessLimit.explain(e) or raise
        warn "heddle: #{message}"
        FAILED
      end

      private

      # Prints through a buffer that does not block: a new master must start even if no program reads its standard
      # error.
      def warn(text) = @errors.puts(text)

      # This command's own defaults, in place of the defaults of {Options}.
      def defaults = {}

      # @return [Symbol, nil] :find to search this folder for a configuration file if no flag and no variable names it;
      #   nil to read none
      def configuration_file = :find

      # Opens the sockets before the application is loaded, so that a port in use is reported at once.
      def serve(configuration)
        @output.sync = true
        @configuration = configuration
        forbid_patches(configuration)
        Protection.fetch(:preempt).prepare if configuration.protections.include?(:preempt)
        log = Server::Log.of(configuration, output: @output)
        pidfile = Server::Pidfile.new(configuration.pidfile) if configuration.pidfile
        way = configuration.worker_processes? ? :serve_by_workers : :serve_alone
        Events.reporting_to(log) { send(way, configuration, log, pidfile) } ? DONE : FAILED
      ensure
        pidfile&.remove
      end

      # Prevents this process from patching Ruby, if protections are off or this process is a master. Each worker
      # patches Ruby by itself, because some workers run without protections.
      def forbid_patches(configuration)
        reason = configuration.without_protection
        reason ||= "done in the workers" if configuration.worker_processes?
        Scheduler::Patches.forbid(reason) if reason
      end

      def serve_alone(configuration, log, pidfile)
        if @inheritance.any?
          raise Server::BootError, "a restart can't change a server with several processes into a single process, as " \
                                   "the new configuration requires: stop the server, and start it again"
        end
        # With workers, only the mold does this. The master must not change its own variables, because a reload reads
        # them again.
        configuration.export_environment
        @server = server = Server.new(configuration, log:)
        server.open
        pidfile&.write
        notify = Server::SystemdNotify.new
        Server::Control.beside(configuration, server, log) do
          application = Adaptations::NewRelic.during_load(configuration) { load_here }
          server.run_alone(application) do
            announce(configuration, log, server.urls, Server::Cluster.boot_details(server))
            notify.attend("serves #{app_name} on #{server.urls.join(", ")}") { server.stopping? }
          end
        ensure
          notify.stopping
        end
      ensure
        server&.close
      end

      # Reports an `exit` while the application is loaded as a failed start. Otherwise a service manager would take the
      # exit status 0 for a normal stop.
      def load_here
        load
      rescue SystemExit => e
        raise Server::BootError.ended(e)
      end

      def serve_by_workers(configuration, log, pidfile)
        inheritance = @inheritance
        load = method(:load)
        @master = master = Server::Cluster::Master.new(configuration, log:, load:, inheritance:) do |urls, details|
          # A restarted master writes the pidfile only now. Until it serves, the pidfile belongs to the old master,
          # which continues if the new one fails.
          pidfile&.write(replaced: true) if inheritance.any?
          source = master.control
          source.control ||= control_of(configuration, source, log, taking_over: true)
          announce(configuration, log, urls, details, workers: master.fleet.size, reserves: master.fleet.reserves)
        end
        source = nil
        answered = master.run do
          pidfile&.write unless inheritance.any?
          master.control = source = Server::Control::Cluster.new(master, log)
          source.control = control_of(configuration, source, log) unless inheritance.any?
        end
      ensure
        source&.control&.finish(answered)
        source&.close
      end

      def control_of(configuration, source, log, taking_over: false)
        Server::Control.open(configuration, source, log, taking_over:).tap { |control| control&.start }
      end

      # Reports that the server serves: as an event in the log or, if its format is text, as lines for people. If a log
      # of that format goes to a file, the event is written to the file, and the lines to the standard output.
      def announce(configuration, log, urls, details, workers: nil, reserves: 0)
        experimental = " (experimental)" if Server::Modes.fetch(configuration.mode).experimental
        fields = { version: VERSION, ruby: RUBY_VERSION, selector: details[:selector], application: app_name, urls:,
                   mode: "#{configuration.mode}#{experimental}", processes: processes(configuration, workers, reserves),
                   ruby_notice: Platform.newer_ruby, adapted: details[:adapted][/.+/],
                   protection: details[:protection] }
        return log.event(:server_started, **fields) unless configuration.log_format == :text

        lines = "#{Events::TABLE.fetch(:server_started).text(fields)} Ctrl-C stops it.\n"
        return log.line(lines) unless configuration.log_file

        log.event(:server_started, **fields)
        Server::LineBuffer.new(@output).tap { |output| output.write(lines) }.stop
      end

      # Describes the serving processes, such as "2 workers, each with 5 threads".
      def processes(configuration, workers, reserves)
        threads = configuration.threads
        unit = Server::Modes.fetch(configuration.mode).unit
        inside = if unit.nil? then "one request at a time"
                 else threads == 1 ? "one #{unit}" : "#{threads} #{unit}s"
                 end
        return "this process, #{inside}" if workers.nil?

        why = configuration.describe_auto(workers)&.then { |text| " (#{text})" }
        text = workers == 1 ? "1 worker#{why}, #{inside}" : "#{workers} workers#{why}, each with #{inside}"
        on_demand = configuration.reserve_count - reserves
        [text, *("#{reserves} in reserve" if reserves > 0),
         *("#{on_demand} in reserve on demand" if on_demand > 0)].join(", and ")
      end

      def check_argument_count(rest)
        return if rest.size <= max_arguments

        raise UsageError, "#{command} takes #{max_arguments == 0 ? "no" : "one"} file, but got #{rest.join(", ")}"
      end
    end
  end
end
