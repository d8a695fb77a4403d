# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "action_cable/engine"

Bundler.require(*Rails.groups)

module Board
  # A board for notes: a database, a job queue and web sockets. Nothing in it is for Heddle.
  class Application < Rails::Application
    config.load_defaults 8.0

    # Logs to the terminal, as a server that is started by hand should.
    config.logger = ActiveSupport::TaggedLogging.logger($stdout)
    config.log_level = ENV.fetch("RAILS_LOG_LEVEL", "info").to_sym

    config.active_job.queue_adapter = :solid_queue
    config.action_cable.disable_request_forgery_protection = true
    # Action Cable's own client, which the page imports; there is no pipeline for assets here.
    config.middleware.use Rack::Static, urls: ["/actioncable.esm.js"],
                                        root: ActionCable::Engine.root.join("app/assets/javascripts").to_s
  end
end
