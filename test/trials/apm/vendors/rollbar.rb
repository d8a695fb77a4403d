# frozen_string_literal: true

require "rollbar"
require "rollbar/middleware/rack"

Rollbar.configure do |config|
  config.access_token = "token"
  config.endpoint = "http://127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}/api/1/item/"
  config.environment = "production"
end

module Vendor
  def self.middleware = [Rollbar::Middleware::Rack]

  def self.mark(name, mark)
    Rollbar.scope!(name => mark)
    Rollbar.error(RuntimeError.new("error")) if name == :second
  end
end
