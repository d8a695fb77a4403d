# frozen_string_literal: true

require "action_cable"
require "logger"

# Named by the client.
module Channels
  # Has one stream; what comes goes to all.
  class Room < ActionCable::Channel::Base
    def subscribed = stream_from("room")
    def speak(data) = ActionCable.server.broadcast("room", data["text"])
  end

  # Waits, or sends back what comes.
  class Echo < ActionCable::Channel::Base
    def echo(data) = transmit(data["text"])
  end
end

ActionCable.server.config.tap do |config|
  config.cable = { "adapter" => "async" }
  config.logger = Logger.new(nil)
  config.disable_request_forgery_protection = true
  config.connection_class = -> { ActionCable::Connection::Base }
end

run lambda { |env|
  next [200, { "content-type" => "text/plain" }, ["hello\n"]] if env["PATH_INFO"] == "/hello"

  ActionCable.server.call(env)
}
