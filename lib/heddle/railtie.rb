# frozen_string_literal: true

require "rails/railtie"
require "active_support/railtie"
require "heddle/rails"

module Heddle
  # Configures Rails for requests in fibers, if this process will serve. In a console, in Rake, Sidekiq and bin/jobs
  # Rails keeps its isolation level. `require "heddle"` loads the railtie in a Rails application. When the server
  # starts, {Rails.start} makes the remaining changes.
  class Railtie < ::Rails::Railtie
    # Makes Rails keep a request's state per fiber. Under a server with a thread for each request, this makes no
    # difference. The level is set before the application is loaded, because otherwise a connection that an initializer
    # leases would belong to the thread.
    config.active_support.isolation_level = :fiber if Rails.serving?

    config.heddle = ActiveSupport::OrderedOptions.new

    # Runs after the application's configuration, and before its routes mount Action Cable's server.
    initializer "heddle.cable", after: :load_config_initializers do |app|
      Cable.install if app.config.heddle.cable
    rescue Cable::UnsupportedError => e
      Rails.refusal = e.message # raised later, only in a process that serves: a console needs no Action Cable
    end

    # Registers the server for system tests, which otherwise use Puma.
    initializer "heddle.capybara" do
      require "heddle/capybara" if ::Rails.env.test? && Gem.loaded_specs.key?("capybara")
    end

    # Runs after the application's gems are loaded, and before its initializers.
    config.before_initialize { Rails.isolate_sentry }

    # In `rails server`, Rails::Server is defined already, and has not started a server yet.
    ::Rails::Server.prepend(Rails::WorkerStart) if defined?(::Rails::Server)

    # `rails server` starts the first installed server of Rackup's list. Makes it start Heddle unless the Gemfile lists
    # puma, or the gem falcon is loaded.
    ENV["RACKUP_HANDLER"] ||= "heddle" unless Rails.chosen?("puma") || Gem.loaded_specs.key?("falcon")
  end
end
