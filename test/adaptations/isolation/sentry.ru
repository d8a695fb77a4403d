# frozen_string_literal: true

# Sentry as it is by default, the hub in a thread variable, or with its own setting for fibers.

require "sentry-ruby"

Sentry.init do |config|
  config.dsn = "http://key@sentry.invalid/42"
  config.transport.transport_class = Sentry::DummyTransport
  config.background_worker_threads = 0
  config.sdk_logger = Logger.new(nil)
  config.hub_isolation_level = ENV.fetch("LEVEL", "thread").to_sym if config.respond_to?(:hub_isolation_level=)
end

use Sentry::Rack::CaptureExceptions if ENV["WITH_MIDDLEWARE"]
run(lambda do |env|
  Sentry.set_user(id: env["QUERY_STRING"])
  sleep 0.05
  event = Sentry.capture_message("how is it")
  [200, {}, [event.user[:id]]]
end)
