# frozen_string_literal: true

require "heddle/server"

module Heddle
  module CLI
    # `heddle check [config.ru]`: validates the configuration without serving, and prints each option's value and its
    # source.
    class CheckCommand
      Autoloads.add(self, "heddle/cli/check")

      HELP = <<~TEXT
        check: validate the configuration and print each option's value and its source

          heddle check [config.ru] [flags of serve]

          --changed  print only options that are set
          --load     also load the application

        Exits with 1 if the configuration or the application's file has a mistake, else with 0. Opens no sockets.
      TEXT

      # @return [String]
      def self.help = HELP

      # @param arguments [Array<String>] what follows the command's name
      # @param output [IO]
      def initialize(arguments, output)
        @load, @changed = %w[--load --changed].map { |name| !arguments.delete(name).nil? }
        @flags = Flags.new(arguments)
        @output = output
        @problems = []
      end

      # @return [Integer] the exit status
      # @raise [UsageError]
      def run
        if @flags.help?
          @output.puts(HELP)
          return DONE
        end
        raise UsageError, "check takes one file, but got #{@flags.rest.join(", ")}" if @flags.rest.size > 1

        configuration = configure
        check(configuration) if configuration
        report = Report.new(configuration, application: @application, problems: @problems, changed: @changed)
        @output.puts(report.text)
        @problems.empty? ? DONE : FAILED
      end

      private

      def configure
        Server::Configuration.load(flags: @flags.values)
      rescue Server::ConfigurationError => e
        @problems.concat(e.message.split(/\n(?=\S)/))
        nil
      end

      def check(configuration)
        collecting_error { @problems.concat(configuration.binds.filter_map(&:problem)) }
        collecting_error { configuration.check_selector }
        @problems.push(*pidfile_problem(configuration))
        collecting_error { configuration.web_socket_origins }
        collecting_error { configuration.pubsub_backend }
        collecting_error { check_application(configuration) }
      end

      def collecting_error
        yield
      rescue Server::ConfigurationError, Server::BootError => e
        @problems << e.message
      end

      def check_application(configuration)
        loader = Server::AppLoader.new(@flags.rest.first || CONFIG)
        @application = loader.path
        loader.check
        return unless @load

        configuration.export_environment
        application = with_stdout_on_stderr { loader.load }
        Server::Modes.fetch(configuration.mode).share(application)
        @application = "#{loader.path}, which can be loaded"
      end

      def pidfile_problem(configuration)
        path = configuration.pidfile or return
        folder = File.dirname(path)
        folder = File.dirname(folder) until File.exist?(folder)
        return "can't write the pidfile #{path}: #{folder} is not a folder" unless File.directory?(folder)

        "can't write the pidfile #{path}: this user may not write to #{folder}" unless File.writable?(folder)
      end

      # While the application is loaded, its output goes to the standard error, because it is not part of the report.
      def with_stdout_on_stderr
        output = $stdout
        $stdout = $stderr
        yield
      ensure
        $stdout = output
      end
    end
  end
end
