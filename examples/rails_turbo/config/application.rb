# frozen_string_literal: true

require_relative "boot"

require "rails"
require "action_controller/railtie"
require "action_view/railtie"
require "action_cable/engine"

Bundler.require(*Rails.groups)

module TurboChat
  # Rooms without a database, in which messages are Turbo Streams.
  class Application < Rails::Application
    config.load_defaults 8.1

    # Heddle serves Action Cable: no threads, and open pages stay connected while workers are replaced.
    config.heddle.cable = true

    # Logs to the terminal, as a server that is started by hand should.
    config.logger = ActiveSupport::TaggedLogging.logger($stdout)
    config.log_level = ENV.fetch("RAILS_LOG_LEVEL", "info").to_sym

    # There is no pipeline for assets here.
    config.middleware.use Rack::Static, urls: ["/turbo.min.js"],
                                        root: Turbo::Engine.root.join("app/assets/javascripts").to_s
    config.content_security_policy { |policy| policy.script_src :self }
  end
end
