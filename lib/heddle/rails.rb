# frozen_string_literal: true

require "heddle/runtime"

module Heddle
  # Prepares a Rails application for Heddle's server, which may run requests in fibers of one thread.
  #
  # @api private
  module Rails
    Autoloads.add(self, "heddle/rails")

    REFUSED = "config.active_support.isolation_level is :thread, but Heddle runs each request in a fiber, and many " \
              "fibers share a thread: requests would share Current, the database connection and all other state that " \
              "Rails keeps for a request. Remove the setting from the application's configuration (Heddle sets " \
              ":fiber), or start the server with --mode thread."
    private_constant :REFUSED

    class << self
      # @param text [String] why requests of this application can't run in fibers
      attr_writer :refusal

      # @return [Boolean] whether a Rails application is loaded
      def application? = defined?(::Rails.application) && !::Rails.application.nil?

      # @param name [String] the name of a gem
      # @return [Boolean] whether the gem is loaded because the Gemfile lists it, and not only as a dependency of
      #   another gem (as puma is a dependency of capistrano3-puma)
      def chosen?(name)
        return false unless Gem.loaded_specs.key?(name)
        return true unless defined?(::Bundler::Runtime) && ENV["BUNDLE_GEMFILE"]

        ::Bundler.definition.dependencies.any? { |gem| gem.name == name }
      rescue StandardError
        true
      end

      # @return [Boolean] whether this process will serve the application: it runs `rails server` or a command of
      #   `heddle`, or is a process with system tests
      def serving?
        return true if (defined?(CLI) && !Heddle.autoload?(:CLI)) || defined?(::Rails::Server)

        ::Rails.env.test? && Gem.loaded_specs.key?("capybara")
      end

      # @return [Array<String>] the path of health checks, for which Rails writes no log lines; if the application is
      #   mounted at a path, also with that path in front
      def silenced_paths
        config = ::Rails.application.config if application?
        return [] unless config.respond_to?(:silence_healthcheck_path)

        path = config.silence_healthcheck_path
        path.is_a?(String) ? [path, "#{config.relative_url_root}#{path}"].uniq : []
      end

      # Prepares the loaded application: a Rails application, or one that only uses Active Support or Active Record.
      # Idempotent.
      #
      # @param fibers [Boolean] whether requests run in fibers of one thread
      # @return [void]
      # @raise [Server::BootError] if `fibers` is true, and requests of this application can't run in fibers
      def start(fibers: true)
        if fibers
          raise Server::BootError, @refusal if @refusal

          isolate if defined?(::ActiveSupport::IsolatedExecutionState)
          Adaptations::ActiveSupport.install if Adaptations.adapt?(:activesupport)
          replace_reload_lock if application?
        end
        Adaptations::ActiveSupport.share_with_live if application? && Adaptations.adapt?(:activesupport)
        Databases.install
        CompletedLine.install if application?
        answer_503_without_connection
      end

      # Starts a task that asks the databases for their limits, and logs how many connections the workers may open. Must
      # be called in an event loop.
      #
      # @param log [#event]
      # @param workers [Integer]
      # @param reserves [Integer]
      # @param reloads [Boolean] see {ConnectionBudget}
      # @return [void]
      def report_connections(log, workers, reserves, reloads:)
        Heddle.async(name: "database connections", background: true) do
          ConnectionBudget.all(workers, reserves, reloads:).each { |budget| budget.report(log) }
        rescue StandardError => e
          log.event(:database_connections_unknown, error: "#{e.message} (#{e.class})")
        end
      end

      # Called before this process ends. Makes the clients of Action Cable reconnect, and ends their channels
      # (`unsubscribed`). It concerns only connections of Action Cable's own server.
      # @param log [#event]
      # @return [Boolean] whether there were connections
      def close_cables(log)
        return false unless defined?(::ActionCable::Server::Base) && ::ActionCable.server.connections.any?

        ::ActionCable.server.restart
        true
      rescue StandardError => e
        log.event(:action_cable_not_closed, error: "#{e.message} (#{e.class})")
        false
      end

      # Sets Sentry's isolation level to :fiber. Must be called before Sentry.init, so that the application's block for
      # Sentry.init can override it.
      # @return [void]
      def isolate_sentry
        return unless defined?(::Sentry::Configuration)
        return unless ::Sentry::Configuration.method_defined?(:hub_isolation_level=)

        ::Sentry::Configuration.add_post_initialization_callback { self.hub_isolation_level = :fiber }
      end

      private

      def isolate
        state = ActiveSupport::IsolatedExecutionState
        return if state.isolation_level == :fiber
        if application? && ::Rails.application.config.active_support.isolation_level == :thread
          raise Server::BootError, REFUSED
        end

        # The railtie has not set the level, because the application does not use Rails, or Heddle was loaded before
        # Rails.
        state.isolation_level = :fiber
      end

      # Replaces the reload lock of Rails before 8.2, whose owners are threads, by a lock whose owners are fibers.
      def replace_reload_lock
        return unless ::Rails.application.config.reloading_enabled?
        return if ActiveSupport.version >= Gem::Version.new("8.2.a") || !Adaptations.adapt?(:activesupport)

        interlock = ActiveSupport::Dependencies.interlock
        return if interlock.instance_variable_get(:@lock).is_a?(ReloadLock)

        interlock.instance_variable_set(:@lock, ReloadLock.new)
      end

      # Makes Rails respond with 503 instead of 500 if a request gets no database connection in time, because the server
      # is then busy, not broken.
      def answer_503_without_connection
        return unless defined?(::ActionDispatch::ExceptionWrapper)

        wrapper = ::ActionDispatch::ExceptionWrapper
        name = "ActiveRecord::ConnectionTimeoutError"
        return if wrapper.rescue_responses.key?(name)

        # Since Rails 8.2 the Hash is frozen, so it is replaced.
        wrapper.rescue_responses = wrapper.rescue_responses.merge(name => :service_unavailable)
      end
    end
  end
end
