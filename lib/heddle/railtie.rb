# frozen_string_literal: true

require "rails/railtie"
require "active_support/railtie"
require "heddle/rails"

module Heddle
  # Tells Rails that requests are fibers, if this process is going to serve. In a console, in Rake, Sidekiq and bin/jobs
  # it changes nothing. Loaded by `require "heddle"` in a Rails application; {Rails.start} does the rest when a server
  # starts.
  class Railtie < ::Rails::Railtie
    # Keeps Rails' state of a request by fiber. Under a server with a thread for each request this makes no difference.
    # Set before the application is loaded, because a connection that an initializer leases would stay with its thread.
    config.active_support.isolation_level = :fiber if Rails.serving?

    config.heddle = ActiveSupport::OrderedOptions.new

    # After the application's configuration, and before its routes mount Action Cable's server.
    initializer "heddle.cable", after: :load_config_initializers do |app|
      Cable.install if app.config.heddle.cable
    rescue Cable::UnsupportedError => e
      Rails.refusal = e.message # raised only when serving: a console and a migration need no cable
    end

    # System tests use Puma unless another server is registered.
    initializer "heddle.capybara" do
      require "heddle/capybara" if ::Rails.env.test? && Gem.loaded_specs.key?("capybara")
    end

    # After the application's gems are loaded, before its initializers.
    config.before_initialize { Rails.isolate_sentry }

    # `rails server` has loaded this class, and loads the application's gems next.
    ::Rails::Server.prepend(Rails::WorkerStart) if defined?(::Rails::Server)

    # `rails server` starts the first installed server of Rackup's list. If there is none in the Gemfile, it starts this
    # one.
    ENV["RACKUP_HANDLER"] ||= "heddle" unless Rails.chosen?("puma") || Gem.loaded_specs.key?("falcon")
  end
end
