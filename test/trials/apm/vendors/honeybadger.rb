# frozen_string_literal: true

require "honeybadger"

Honeybadger.configure do |config|
  config.api_key = "key"
  config.env = "production"
  config.connection.host = "127.0.0.1"
  config.connection.port = Integer(ENV.fetch("COLLECTOR_PORT"))
  config.connection.secure = false
end

module Vendor
  def self.middleware = [Honeybadger::Rack::ErrorNotifier]

  def self.mark(name, mark)
    Honeybadger.context(name => mark)
    Honeybadger.notify(RuntimeError.new("error")) if name == :second
  end
end
