# frozen_string_literal: true

require "json"

module Heddle
  module CLI
    class Demo
      # The handler of the room's WebSockets: a message of one goes to all, and to the event streams.
      class Talk
        TOPIC = "demo room"
        # Bytes of a message.
        LONGEST = 300

        # From now on the client gets what is said, without Ruby code for it.
        def on_open(client)
          client.subscribe(TOPIC)
        end

        # A visitor may say anything: it is text to the page.
        def on_message(client, message)
          return client.close(1009, "a message has at most #{LONGEST} bytes") if message.bytesize > LONGEST
          return client.close(1008, "a message has an id and a text") unless message?(JSON.parse(message,
                                                                                                 max_nesting: 2))

          client.publish(TOPIC, message)
        rescue JSON::ParserError, EncodingError
          client.close(1007, "a message is JSON")
        end

        private

        def message?(value) = value.is_a?(Hash) && value.keys == %w[id text] && value.values.all?(String)
      end
    end
  end
end
