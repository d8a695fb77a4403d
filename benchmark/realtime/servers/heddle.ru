# frozen_string_literal: true

require "heddle"

# What a socket does, by its path.
module Handlers
  # Sends back what comes.
  class Echo
    def on_message(client, message) = client.write(message)
  end

  # Has one subscription; what comes goes to all.
  class Room
    def on_open(client) = client.subscribe("room")
    def on_message(client, message) = client.publish("room", message)
  end

  # Waits.
  class Idle
    def on_message(_client, _message) = nil
  end

  BY_PATH = { "/echo" => Echo.new, "/room" => Room.new, "/idle" => Idle.new }.freeze
end

run lambda { |env|
  next Heddle::EventStream.response("room") if env["PATH_INFO"] == "/events"

  handler = Handlers::BY_PATH[env["PATH_INFO"]] or next [200, { "content-type" => "text/plain" }, ["hello\n"]]

  Heddle::WebSocket.upgrade(env, handler)
}
