# frozen_string_literal: true

require "airbrake"

Airbrake.configure do |config|
  config.project_id = 1
  config.project_key = "key"
  config.host = config.apm_host = config.error_host = "http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}"
  config.environment = "production"
  config.remote_config = false
  config.performance_stats_flush_period = 1
end

module Vendor
  def self.middleware = [Airbrake::Rack::Middleware]

  def self.mark(name, mark)
    Airbrake.merge_context(name => mark)
    Airbrake.notify(RuntimeError.new("error")) if name == :second
  end
end
