# frozen_string_literal: true

require "sentry-ruby"

Sentry.init do |config|
  config.dsn = "http://key@127.0.0.1:#{ENV.fetch("COLLECTOR_PORT")}/1"
  config.traces_sample_rate = 1.0
  config.auto_session_tracking = false
end

module Vendor
  def self.middleware = [Sentry::Rack::CaptureExceptions]

  def self.mark(name, mark) = Sentry.set_tags(name => mark)
end
