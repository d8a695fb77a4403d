# frozen_string_literal: true

# Action Cable's own server, or Heddle::Cable: CABLE_ADAPTER=heddle.
adapter = ENV.fetch("CABLE_ADAPTER", "async")
gem adapter == "heddle" ? "actioncable-next" : "actioncable"

require "active_support"
require "active_support/core_ext/hash/indifferent_access"
require "action_cable"
require "logger"

if adapter == "heddle"
  require "heddle"
  Heddle::Cable.install
end
require_relative "channels"

ActionCable.server.config.tap do |config|
  config.cable = { "adapter" => adapter }.with_indifferent_access
  config.logger = Logger.new(nil)
  config.disable_request_forgery_protection = true
  config.connection_class = -> { ActionCable::Connection::Base }
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/hello" then [200, { "content-type" => "text/plain" }, ["hello\n"]]
  when "/broadcast"
    ActionCable.server.broadcast("room", env["QUERY_STRING"])
    [204, {}, []]
  else ActionCable.server.call(env)
  end
}
