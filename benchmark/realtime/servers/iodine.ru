# frozen_string_literal: true

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

  # An event stream of the same room. Iodine sends the head of the response with the first event.
  class Events
    def on_open(client)
      client.subscribe("room")
      client.write("welcome")
    end
  end

  # Waits.
  class Idle
    def on_message(_client, _message) = nil
  end

  BY_PATH = { "/echo" => Echo.new, "/room" => Room.new, "/events" => Events.new, "/idle" => Idle.new }.freeze
end

run lambda { |env|
  handler = Handlers::BY_PATH[env["PATH_INFO"]] or next [200, { "content-type" => "text/plain" }, ["hello\n"]]

  env["rack.upgrade"] = handler
  [env["rack.upgrade?"] == :sse ? 200 : 101, {}, []]
}
