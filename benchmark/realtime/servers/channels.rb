# frozen_string_literal: true

# The channels of Action Cable, named by the client.
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
