# frozen_string_literal: true

require "heddle/runtime"

module Heddle
  # The settings that a Rails application needs under a server whose requests are fibers of one thread.
  #
  # @api private
  module Rails
    Autoloads.add(self, "heddle/rails")

    REFUSED = "config.active_support.isolation_level is :thread, but each request is a fiber here: requests would " \
              "share Current, the database connection and all other state that Rails keeps for a request. Remove " \
              "that line from the application's configuration (Heddle sets :fiber), or serve it with --mode thread."
    private_constant :REFUSED

    class << self
      # @param text [String] why the application can't be served by fibers
      attr_writer :refusal

      # @return [Boolean] whether a Rails application is loaded
      def application? = defined?(::Rails.application) && !::Rails.application.nil?

      # @param name [String] of a gem
      # @return [Boolean] whether it is loaded because the Gemfile names it, and not only because another gem needs it,
      #   as capistrano3-puma needs puma
      def chosen?(name)
        return false unless Gem.loaded_specs.key?(name)
        return true unless defined?(::Bundler::Runtime) && ENV["BUNDLE_GEMFILE"]

        ::Bundler.definition.dependencies.any? { |gem| gem.name == name }
      rescue StandardError
        true
      end

      # @return [Boolean] whether this process is to serve the application that it loads: as `heddle serve`, as `rails
      #   server`, or as the server of system tests
      def serving?
        return true if (defined?(CLI) && !Heddle.autoload?(:CLI)) || defined?(::Rails::Server)

        ::Rails.env.test? && Gem.loaded_specs.key?("capybara")
      end

      # @return [Array<String>] the path of health checks, which Rails leaves out of its log; also below the path at
      #   which the application is mounted
      def silenced_paths
        config = ::Rails.application.config if application?
        return [] unless config.respond_to?(:silence_healthcheck_path)

        path = config.silence_healthcheck_path
        path.is_a?(String) ? [path, "#{config.relative_url_root}#{path}"].uniq : []
      end

      # Makes the loaded application ready: a Rails application, or one that uses Active Support or Active Record alone.
      # Idempotent.
      #
      # @param fibers [Boolean] whether requests are fibers of one thread
      # @return [void]
      # @raise [Server::BootError] if requests are fibers, and the application can't be served by fibers
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

      # Logs how many database connections the workers may open, once the databases have reported their limits. Must be
      # called in a loop.
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

      # Before this process ends, makes the clients of Action Cable reconnect, and ends their channels (`unsubscribed`).
      # Only for connections of Action Cable itself.
      # @param log [#event]
      # @return [Boolean] whether there were any
      def close_cables(log)
        return false unless defined?(::ActionCable::Server::Base) && ::ActionCable.server.connections.any?

        ::ActionCable.server.restart
        true
      rescue StandardError => e
        log.event(:action_cable_not_closed, error: "#{e.message} (#{e.class})")
        false
      end

      # Must be called before Sentry.init, whose block may override the setting.
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

        # The railtie has not run: there is no Rails, or Heddle was loaded before Rails.
        state.isolation_level = :fiber
      end

      # Before 8.2, Rails' reload lock belongs to threads, and so can't tell fibers apart.
      def replace_reload_lock
        return unless ::Rails.application.config.reloading_enabled?
        return if ActiveSupport.version >= Gem::Version.new("8.2.a") || !Adaptations.adapt?(:activesupport)

        interlock = ActiveSupport::Dependencies.interlock
        return if interlock.instance_variable_get(:@lock).is_a?(ReloadLock)

        interlock.instance_variable_set(:@lock, ReloadLock.new)
      end

      # If a request gets no connection from the pool in time, the server is busy, not broken.
      def answer_503_without_connection
        return unless defined?(::ActionDispatch::ExceptionWrapper)

        wrapper = ::ActionDispatch::ExceptionWrapper
        name = "ActiveRecord::ConnectionTimeoutError"
        return if wrapper.rescue_responses.key?(name)

        # A frozen list since Rails 8.2.
        wrapper.rescue_responses = wrapper.rescue_responses.merge(name => :service_unavailable)
      end
    end
  end
end
