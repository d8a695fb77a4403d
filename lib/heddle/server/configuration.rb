# frozen_string_literal: true

# Loaded now rather than at the first use, because in Ruby 3.3 only the main Ractor can load files.
require "heddle/net/networks"
require "heddle/server/configuration/addresses"
require "heddle/server/configuration/path_options"
require "heddle/server/configuration/processes"

module Heddle
  class Server
    # The values of all {Options}, built once and frozen.
    class Configuration
      include Addresses
      include PathOptions
      include Processes

      Autoloads.add(self, "heddle/server/configuration")

      ORIGIN = %r{\A(?:\*|[a-z][a-z0-9+.-]*://[^/\s?#]+)\z}i
      # Seconds for which pub/sub can replay a message, unless the message is overwritten earlier.
      HISTORY_AGE = 86_400
      private_constant :ORIGIN, :HISTORY_AGE

      attr_reader(*Options::OWN.map(&:name))

      # @return [HTTP::Limits] the limits of clients' requests
      attr_reader :http

      # Finds the value of each option. The first source that has one counts: the flags, the environment variables, the
      # configuration file, `defaults`, the platform's default, the option's default.
      #
      # @param flags [Hash{Symbol => Object}] the flags of the command line, by option: unparsed Strings, Arrays of
      #   these, true or false
      # @param environment [Hash{String => String}] the environment variables
      # @param defaults [Hash{Symbol => Object}] the command's defaults, which replace those of {Options}
      # @param file [Symbol, String, nil] :find: use `config/heddle.rb` or `heddle.rb` if there is one; a String: the
      #   file's path; nil: read no file. The flag `--config` and the variable HEDDLE_CONFIG take precedence.
      # @param folder [String] the application's folder
      # @return [Configuration]
      # @raise [ConfigurationError] the message has a line for each mistake
      def self.load(flags: {}, environment: ENV, defaults: {}, file: :find, folder: WorkingFolder.current)
        Loader.new(flags:, environment:, defaults:, file:, folder:).load
      end

      # @param origin [Origin] where the values came from
      # @param values [Hash{Symbol => Object}] the values that differ from the defaults, by option
      # @raise [ConfigurationError]
      def initialize(origin: Origin.new, **values)
        unknown = values.keys - Options::BY_NAME.keys
        raise ConfigurationError, "there is no option called #{unknown.join(", ")}" if unknown.any?

        Options::OWN.partition { |option| !option.dependent? }.flatten.each { |option| set(option, values) }
        @origin = origin
        check_mode
        check_paths
        check_drain_delay
        @http = http_configuration(values)
        @selector = @selector&.to_sym
        freeze
      end

      # @return [Array<String>, nil] the origins whose pages may open a WebSocket; nil: only the server's own origin
      # @raise [ConfigurationError]
      def web_socket_origins
        wrong = allowed_origins.find { |origin| !origin.match?(ORIGIN) }
        return allowed_origins.empty? ? nil : allowed_origins unless wrong

        raise ConfigurationError, "allowed_origins (#{source(:allowed_origins)}) must be same, or origins such as " \
                                  "https://example.com, or *, but has #{wrong.inspect}"
      end

      # Checks the option `selector`. If the option is not set, finds the best selector. Called before any process is
      # forked, so that a problem is logged once, not by each process.
      # @return [void]
      # @raise [ConfigurationError] if the chosen selector does not work on this machine
      def check_selector
        return Selector.find(selector, "selector (#{source(:selector)})") if selector

        Selector.best unless Modes.fetch(mode).rejects.key?(:io_uring)
      rescue ArgumentError => e
        raise ConfigurationError, "#{e.message}. Leave the option out to use the best selector that works here"
      end

      # Creates the shared memory for pub/sub messages, unless this process has it already. Then starts to receive the
      # messages of the backend, if there is one.
      # @param report [#call] called with each event
      # @return [void]
      # @raise [ConfigurationError] when the memory or the backend is not available
      def open_pubsub(report)
        open_history
        return unless (backend = pubsub_backend)

        PubSub::Route.backend = backend
        report.call(:pubsub_waiting, backend:) unless backend.follow(report:)
      end

      # @return [PubSub::Backend, nil] nil: messages are passed in memory only
      # @raise [ConfigurationError] when the backend is not available
      def pubsub_backend
        return if pubsub == "memory"

        PubSub::Backend.new(pubsub).tap(&:load_gem)
      rescue ArgumentError, PubSub::UnreachableError => e
        raise ConfigurationError, "pubsub (#{source(:pubsub)}): #{e.message}"
      end

      # @return [Configuration] a copy that Ractors can share: it contains the values, but no hooks and sources
      def shareable_copy
        copy = clone(freeze: false)
        copy.instance_variable_set(:@origin, nil)
        Ractor.make_shareable(copy)
      end

      # @param name [Symbol] the name of any option, also of those in {#http}
      # @return [Object] the option's value
      def [](name) = Options::OWN.include?(Options::BY_NAME.fetch(name)) ? public_send(name) : http.public_send(name)

      # @param name [Symbol] the name of an option
      # @return [Source] the source of its value
      def source(name) = @origin.sources.fetch(name, Source::DEFAULT)

      # @return [Hooks] the blocks of the configuration file
      def hooks = @origin.hooks

      # @return [String, nil] the path of the configuration file, for messages; nil: no file was read
      def file = @origin.file

      # @return [Array<String>] probable mistakes
      def warnings = source(:port).kind == :flag ? [*@origin.warnings, *port_warning] : @origin.warnings

      # Loads the configuration again, from the same sources.
      # @return [Configuration] the new configuration
      # @raise [ConfigurationError] if the new configuration is wrong; this one remains unchanged
      def reload = @origin.again ? @origin.again.call : self

      # @param newer [Configuration] the result of {#reload}
      # @return [Array<Symbol>] the changed options that take effect only when a server starts
      def needing_restart(newer)
        Options::AT_START.reject { |name| self[name] == newer[name] }
      end

      # Sets RACK_ENV and RAILS_ENV to the option `environment`, because frameworks read them when they are loaded. If
      # the option comes from one of these variables, only an unset RACK_ENV is set. If nothing sets the option, only
      # RACK_ENV is set.
      # @param variables [Hash{String => String}]
      # @return [void]
      def export_environment(variables = ENV)
        if source(:environment).kind == :variable && %w[RAILS_ENV RACK_ENV].include?(source(:environment).place)
          variables["RACK_ENV"] ||= environment
        else
          variables["RACK_ENV"] = environment
          variables["RAILS_ENV"] = environment unless source(:environment).kind == :default
        end
      end

      private

      def open_history
        PubSub::History.open(pubsub_memory, pubsub_history, HISTORY_AGE)
      rescue SystemCallError => e
        limit = "; the limit on the size of files (ulimit -f) applies to it, too" if e.is_a?(Errno::EFBIG)
        raise ConfigurationError, "pubsub_memory (#{source(:pubsub_memory)}): the system provides no shared memory " \
                                  "of #{pubsub_memory} bytes: #{e.message}#{limit}"
      end

      # Options that can end requests early, and the values that switch this off.
      INTERRUPTING = { request_timeout: 0, cancel_on_disconnect: :off }.freeze
      private_constant :INTERRUPTING

      def check_mode
        INTERRUPTING.each do |name, none|
          next if public_send(name) == none || !%i[thread single].include?(mode)

          raise ConfigurationError, "#{name} works only if requests run in fibers, but mode is #{mode}: a request " \
                                    "in a thread can't be ended safely. Set #{name} #{none.inspect}, or mode :fiber"
        end
        reason = Modes.fetch(mode).rejects[:io_uring]
        return unless reason && selector&.to_sym == :io_uring

        raise ConfigurationError, "selector io_uring (#{source(:selector)}) does not work in mode #{mode}: #{reason}"
      end

      # The default of Kubernetes' setting terminationGracePeriodSeconds. Kubernetes kills a pod this many seconds after
      # it has asked the pod to stop.
      GRACE_PERIOD = 30
      private_constant :GRACE_PERIOD

      # Rejects a drain_delay that Kubernetes' grace period would cut off, also outside of Kubernetes. If stop_timeout
      # is set, too, the user has probably set a longer grace period.
      def check_drain_delay
        return if drain_delay < GRACE_PERIOD || source(:stop_timeout).kind != :default

        raise ConfigurationError, "drain_delay (#{source(:drain_delay)}) is " \
                                  "#{Options::Units.text(:seconds, drain_delay)}, but Kubernetes kills a pod after " \
                                  "#{GRACE_PERIOD} s by default. Lower drain_delay, or set stop_timeout, too; in " \
                                  "Kubernetes, set terminationGracePeriodSeconds above the sum of both"
      end

      def set(option, values)
        value = values.fetch(option.name) do
          option.default.is_a?(Proc) ? option.default.call(known) : option.default
        end
        instance_variable_set(:"@#{option.name}", value.freeze)
      end

      # Returns the values that are set so far, for defaults that depend on them.
      def known
        Options::OWN.to_h { |option| [option.name, instance_variable_get(:"@#{option.name}")] }
      end

      def http_configuration(values)
        HTTP::Limits.new(**values.slice(*HTTP::Limits::OPTIONS.map(&:name)))
      rescue ArgumentError => e
        raise ConfigurationError, e.message
      end
    end
  end
end
