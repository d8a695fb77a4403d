# frozen_string_literal: true

module Heddle
  module CLI
    # What the commands that serve have in common: flags, sockets, the line that says where, mistakes in one message.
    class Serve
      # @param arguments [Array<String>] what follows the command's name
      # @param output [IO]
      def initialize(arguments, output)
        @flags = Flags.new(arguments)
        @output = output
      end

      # @return [Integer] the exit status
      # @raise [UsageError]
      def run
        if @flags.help?
          @output.puts(Help.for(command, *@flags.help_words))
          return DONE
        end
        check_rest(@flags.rest)
        configuration = Server::Configuration.load(flags: @flags.values, defaults:, file: configuration_file)
        configuration.warnings.each { |text| warn "heddle: #{text}" }
        configuration.export_environment
        serve(configuration)
      rescue Server::ConfigurationError => e
        raise UsageError, e.message
      rescue Server::BootError => e
        warn "heddle: #{e.message}"
        FAILED
      end

      private

      # What this command wants otherwise than {Server::Options}.
      def defaults = {}

      # Where the configuration file is, when nobody names one.
      def configuration_file = :find

      # The sockets first: that a port is taken should not take a minute of loading to find out.
      def serve(configuration)
        @output.sync = true
        raise_descriptor_limit
        log = Server::Log.of(configuration, output: @output)
        @server = server = Server.new(configuration, log:)
        server.open
        pidfile = Server::Pidfile.new(configuration.pidfile) if configuration.pidfile
        pidfile&.write
        notify = Server::SystemdNotify.new
        control = Server::Control.open(configuration, Server::Control::Alone.new(server, log), log)
        control&.start
        application = load
        answered = server.run(application, signals: true) do
          announce(server, log)
          notify.attend("serves #{what} on #{server.urls.join(", ")}") { server.stopping? }
        end
        answered ? DONE : FAILED
      ensure
        pidfile&.remove
        notify&.stopping
        control&.stop
      end

      # A connection is a descriptor, and the usual soft limit of 1,024 is meant for programs that use `select`.
      def raise_descriptor_limit
        soft, hard = Process.getrlimit(Process::RLIMIT_NOFILE)
        Process.setrlimit(Process::RLIMIT_NOFILE, hard, hard) if soft < hard
      rescue SystemCallError
        # Then it is what it is.
      end

      # A person reads it where the command was given, wherever the log goes; a program, among the other lines.
      def announce(server, log)
        text = "Heddle #{VERSION} (Ruby #{RUBY_VERSION}, #{Fiber.scheduler.selector}) serves #{what} " \
               "on #{server.urls.join(", ")}"
        protection = "Protection: #{Protection.summary}."
        return log.banner("#{text}. #{protection}") unless server.configuration.log_format == :text

        @output.puts(text, "#{protection} Ctrl-C stops it.")
      end

      def check_rest(rest)
        return if rest.size <= most_arguments

        raise UsageError, "#{command} takes #{most_arguments == 0 ? "no" : "one"} file, but got #{rest.join(", ")}"
      end
    end
  end
end
