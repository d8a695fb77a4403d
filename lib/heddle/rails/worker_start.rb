# frozen_string_literal: true

module Heddle
  module Rails
    # Makes `rails server` start workers if they are configured, except in development and test. Before the application
    # is loaded, this process becomes the master of `heddle serve`. A master never loads the application itself, so that
    # a reload can replace the application. Prepended to Rails::Server.
    module WorkerStart
      COMMAND = File.expand_path("../../../exe/heddle", __dir__)
      private_constant :COMMAND

      # @see ::Rails::Server#start
      def start(*)
        arguments = WorkerStart.arguments(server, options) or return super
        # `heddle serve` has no flag --log-to-stdout. But production.rb of Rails 5 to 7.0 reads RAILS_LOG_TO_STDOUT, and
        # that of newer versions always logs to the standard output.
        variables = options[:log_stdout] ? { "RAILS_LOG_TO_STDOUT" => "1" } : {}
        Kernel.exec(variables, RbConfig.ruby, COMMAND, *arguments)
      end

      # The address that Rails prints. It is nil for Heddle, because Rails does not know config/heddle.rb: Heddle prints
      # its addresses itself.
      # @return [String, nil]
      def served_url = (super unless WorkerStart.heddle?(server))

      class << self
        # @return [Boolean] whether this handler of Rackup is Heddle's
        def heddle?(handler) = handler.name == "Rackup::Handler::Heddle"

        # @param handler [Module] the handler that Rackup has found
        # @param options [Hash{Symbol => Object}] the options of `rails server`
        # @return [Array<String>, nil] arguments of the command heddle; nil: serve in this process
        def arguments(handler, options)
          return unless heddle?(handler) && !options[:daemonize]

          configuration = handler.configuration(options)
          return if Options::ONE_PROCESS.include?(configuration.environment)
          return unless configuration.worker_processes?

          ["serve", options[:config] || "config.ru", *flags(configuration, options)]
        rescue Server::ConfigurationError
          nil # the handler reports the error
        end

        private

        # The options that `rails server` itself sets. `heddle serve` reads all other options from the same places as
        # this process.
        def flags(configuration, options)
          found = configuration.access_log ? [] : ["--no-access-log"]
          said = ->(name) { %i[file variable].include?(configuration.source(name).kind) }
          configuration.bind.each { |address| found.push("--bind", address) } unless said.call(:bind)
          found.push("--port", configuration.port.to_s) unless said.call(:port) || configuration.own_ports?
          found.push("--pidfile", options[:pid]) if options[:pid] && !said.call(:pidfile)
          found.push("--early-hints", configuration.early_hints.to_s) if options[:early_hints]
          found
        end
      end
    end
  end
end
