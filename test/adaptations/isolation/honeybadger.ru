# frozen_string_literal: true

# Honeybadger's context of an error.

require "honeybadger"

Honeybadger.configure do |config|
  config.api_key = "key"
  config.backend = "test"
  config.logger = Logger.new(nil)
end

run(lambda do |env|
  seen = Honeybadger.get_context&.fetch(:user, nil)
  Honeybadger.context(user: env["QUERY_STRING"])
  sleep 0.05
  [200, {}, ["#{seen}#{Honeybadger.get_context[:user]}"]]
end)
