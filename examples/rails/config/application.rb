# frozen_string_literal: true

require_relative "boot"

require "rails"
require "action_controller/railtie"
require "action_view/railtie"

Bundler.require(*Rails.groups)

module Loom
  # A small Rails application without a database.
  class Application < Rails::Application
    config.load_defaults 8.0

    # Logs to the terminal, as a server that is started by hand should.
    config.logger = ActiveSupport::TaggedLogging.logger($stdout)
    config.log_level = ENV.fetch("RAILS_LOG_LEVEL", "info").to_sym
  end
end
