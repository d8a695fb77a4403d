# frozen_string_literal: true

require "heddle/autoloads"

module Heddle
  # The changes that Heddle makes to other gems so that they work in its event loops. {TABLE} lists them. If Heddle was
  # not tested with a gem's version, it logs a warning and does not change the gem. The log at boot and `heddle doctor`
  # list the changed gems; the option `adapt` selects the gems to change.
  #
  # @api private
  module Adaptations
    Autoloads.add(self, "heddle/adaptations")

    # A gem that Heddle changes.
    #
    # @!attribute gem [String]
    # @!attribute constant [String] a constant that the gem defines when it is loaded
    # @!attribute tried [Array<String>] the versions that Heddle was tested with; it changes no others
    # @!attribute needed [Array<String>] the versions that need the change; other versions work without it
    # @!attribute fibers [Boolean] whether only mode fiber needs the change
    # @!attribute variable [String, nil] a thread variable of the gem; the gem is changed only if the option
    #   `isolate` names this variable
    # @!attribute changes [String] what the change does
    Row = Data.define(:gem, :constant, :tried, :needed, :fibers, :variable, :changes) do
      def initialize(gem:, constant:, changes:, tried: [">= 0"], needed: [">= 0"], fibers: false, variable: nil) = super

      # @return [Symbol] the gem's name in the option `adapt`
      def name = gem.tr("-", "_").to_sym

      # @return [Gem::Version, nil] the gem's version; 0 if it is unknown; nil if the gem is not loaded
      def version
        return unless Adaptations.loaded?(constant)

        Gem.loaded_specs[gem]&.version || Gem::Version.new(own_version || "0")
      end

      # @return [Symbol, nil] :made (the gem is changed), :untried (its version was not tested) or :excluded (by an
      #   option); nil if the gem is not loaded, or needs no change
      def state(except: Adaptations.except, isolated: nil, fibers: true)
        found = version or return
        return if !Gem::Requirement.new(*needed).satisfied_by?(found) || (self.fibers && !fibers)
        return :excluded if except.include?(name) || (variable && isolated&.none? { |one| one.to_s == variable })

        Gem::Requirement.new(*tried).satisfied_by?(found) ? :made : :untried
      end

      # @return [String]
      def to_s = "#{gem} #{version}"

      private

      # Reads the version from the gem's constant VERSION. RubyGems may not know the version: a standalone bundle does
      # not load RubyGems, and a default gem can be loaded without being in the bundle.
      def own_version
        spaces = constant.split("::").each_with_object([]) { |name, all| all << (all.last || Object).const_get(name) }
        owner = spaces.reverse.find { |one| one.name != "Rack" && one.const_defined?(:VERSION, false) } or return
        found = owner::VERSION
        found = found.const_get(:STRING) if found.is_a?(Module)
        found.to_s if Gem::Version.correct?(found.to_s)
      end
    end

    TABLE = [
      Row.new(gem: "rack-timeout", constant: "Rack::Timeout::RequestTimeoutException", tried: [">= 0.6", "< 0.8"],
              fibers: true, changes: "its time limits are timers of the loop, and raise in the request's fiber"),
      Row.new(gem: "concurrent-ruby", constant: "Concurrent::ThreadLocalVar", tried: [">= 1.2", "< 1.4"], fibers: true,
              changes: "a ThreadLocalVar has a value for each request; a FiberLocalVar loses its value when the " \
                       "request ends"),
      Row.new(gem: "tilt", constant: "Tilt::Template", tried: [">= 2.0", "< 3"], fibers: true,
              changes: "requests compile templates one after the other"),
      Row.new(gem: "newrelic_rpm", constant: "NewRelic::Agent", tried: [">= 10", "< 11"],
              changes: "its dispatcher is set to falcon: of the servers that the agent knows, only falcon runs " \
                       "requests in fibers and forks workers"),
      Row.new(gem: "i18n", constant: "I18n", needed: ["< 1.15"], variable: "i18n_config", fibers: true,
              changes: "each request has its own locale (option isolate)"),
      Row.new(gem: "sentry-ruby", constant: "Sentry", needed: [">= 4.3.2"], variable: "sentry_hub", fibers: true,
              changes: "each request has its own hub (option isolate, or Sentry's hub_isolation_level)"),
      Row.new(gem: "activesupport", constant: "ActiveSupport::IsolatedExecutionState", tried: [">= 7.1", "< 8.3"],
              fibers: true, changes: "an Enumerator and an action of ActionController::Live have the state of their " \
                                     "request; before 8.2, the reload lock belongs to fibers, not threads"),
      Row.new(gem: "activerecord", constant: "ActiveRecord::Base", tried: [">= 7.1", "< 8.3"],
              changes: "abandoned queries are cancelled; the pool serves tasks in order, and tasks that wait for a " \
                       "connection count as the worker's load"),
      Row.new(gem: "sequel", constant: "Sequel::Database", tried: [">= 5.32", "< 6"],
              changes: "abandoned queries are cancelled, and the pool isolates by fiber"),
      Row.new(gem: "trilogy", constant: "Trilogy", tried: [">= 2.7", "< 3"],
              changes: "abandoned queries are cancelled"),
      Row.new(gem: "mysql2", constant: "Mysql2::Client", tried: [">= 0.5", "< 0.6"],
              changes: "abandoned queries are cancelled"),
      Row.new(gem: "net-http", constant: "Net::HTTP", tried: [">= 0.3", "< 1"],
              changes: "its waits count as http in a request's time account"),
      Row.new(gem: "redis-client", constant: "RedisClient", tried: [">= 0.17", "< 1"],
              changes: "its waits count as redis in a request's time account"),
      Row.new(gem: "opentelemetry-sdk", constant: "OpenTelemetry::SDK::Trace::Span", tried: [">= 1.4", "< 2"],
              changes: "a request's span has the parts of the time account as attributes"),
      Row.new(gem: "async", constant: "Async::Task", tried: [">= 2.43", "< 3"], changes: "its tasks run in the loop")
    ].freeze
    BY_NAME = TABLE.to_h { |row| [row.name, row] }.freeze
    # Gems that Heddle changes only when the server starts: a later change would lose connections or state of running
    # requests.
    AT_START = BY_NAME.values_at(:newrelic_rpm, :activesupport, :sequel).freeze
    private_constant :BY_NAME, :AT_START

    @except = []
    @missing = [].freeze
    @decisions = {}.freeze # shareable, because other Ractors read it

    class << self
      # @return [Array<Symbol>] the names of the gems that the option `adapt` excludes
      attr_reader :except

      # Changes the gems, except for those that other parts of Heddle change (such as {Databases}). Idempotent.
      # @param configuration [Server::Configuration]
      # @return [void]
      def start(configuration)
        except = excluded(configuration)
        @decisions = {}.freeze unless except == @except
        @except = except
        @missing = AT_START.reject(&:version)
        install(configuration)
      end

      # Changes gems that requests have loaded. The server's loops call this method each second. It does nothing until
      # Ruby has loaded no file for one second, so that it does not change a gem that is only partly loaded.
      # @param (see #start)
      # @return [void]
      def update(configuration)
        return unless Ractor.current.equal?(Ractor.main)

        now = MonotonicClock.now
        @features, @loaded_at = $LOADED_FEATURES.size, now unless @features == $LOADED_FEATURES.size
        return if @features == @updated || now < @loaded_at + 1

        @updated = @features
        install(configuration)
        late, @missing = @missing.partition(&:version)
        late.each do |row|
          next unless row.state(fibers: configuration.mode == :fiber) == :made

          Events.report(:gem_not_adapted, reason: "#{row} is not adapted, because a request has loaded it. Load the " \
                                                  "gem with the application, so that Heddle adapts it (#{row.changes})")
        end
      rescue StandardError, LoadError => e
        Events.report(:gem_not_adapted, reason: "can't adapt the gems that requests have loaded: #{e.message}")
      end

      # Gives each request its own values of the thread variables that the option `isolate` lists, except for those of
      # gems that the option `adapt` excludes.
      # @param configuration [Server::Configuration]
      # @return [void]
      def isolate(configuration)
        names = configuration.isolate.map(&:to_s) - BY_NAME.values_at(*excluded(configuration)).filter_map(&:variable)
        Isolation.start(names)
      end

      # Decides whether to change a gem, and warns once if Heddle was not tested with its version. The main Ractor
      # decides for all Ractors, because RubyGems works only there.
      # @param name [Symbol]
      # @return [Boolean] whether the gem is loaded, and Heddle changes it
      def adapt?(name)
        @decisions.fetch(name) do
          next false unless Ractor.current.equal?(Ractor.main)

          row = BY_NAME.fetch(name)
          state = row.state or next false # the gem may be loaded later
          Events.report(:gem_not_adapted, reason: untried(row)) if state == :untried
          @decisions = @decisions.merge(name => state == :made).freeze
          @decisions.fetch(name)
        end
      end

      # Loads the support for the gem async. Does nothing outside of the main Ractor, because Ruby 3.3 can't require
      # files there.
      # @return [void]
      def load_async
        require "heddle/async" if Ractor.current.equal?(Ractor.main) && adapt?(:async)
      end

      # @param configuration [Server::Configuration]
      # @return [Hash{Symbol => Array<Row>}] the loaded gems, by {Row#state}
      def by_state(configuration)
        except = excluded(configuration)
        TABLE.group_by do |row|
          row.state(except:, isolated: configuration.isolate, fibers: configuration.mode == :fiber)
        end.except(nil)
      end

      # @param configuration [Server::Configuration]
      # @return [String] the changed gems, and the loaded gems whose version was not tested, for the log at boot
      def summary(configuration)
        found = by_state(configuration)
        [*found[:made]&.join(", "), *found[:untried]&.map { |row| "not #{row} (version not tested)" }].join("; ")
      end

      # @return [String]
      def untried(row)
        "#{row} is not adapted: Heddle was tested only with versions #{row.tried.join(", ")}. The change " \
          "would be: #{row.changes}"
      end

      # Checks whether a constant is defined, without loading it.
      # @param constant [String]
      # @return [Boolean]
      def loaded?(constant)
        constant.split("::").inject(Object) do |outer, name|
          return false if outer.autoload?(name) || !outer.const_defined?(name, outer.equal?(Object))

          outer.const_get(name)
        end
        true
      end

      private

      def install(configuration)
        Waits.install
        OpenTelemetry.install
        return unless configuration.mode == :fiber

        RackTimeout.install if adapt?(:rack_timeout)
        ConcurrentRuby.install if adapt?(:concurrent_ruby)
        Tilt.install if adapt?(:tilt)
      end

      # @return [Array<Symbol>] the names of the gems that the option `adapt` excludes
      def excluded(configuration) = BY_NAME.keys - configuration.adapt
    end
  end
end
