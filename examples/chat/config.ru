# frozen_string_literal: true

require "heddle"
require "json"

# Each message goes to everybody in the room, in all processes of the server.
class Room
  TOPIC = "room"
  # Messages that a late comer gets.
  HISTORY = 30
  LENGTHS = { "name" => 1..40, "text" => 1..1_000 }.freeze

  # @param since [String, nil] the position that a page which comes back has kept
  def initialize(since) = @since = since

  def on_open(client) = client.subscribe(TOPIC, since: @since || beginning, as: :json)

  def on_message(client, message)
    said = JSON.parse(message)
    return client.close(1008, "name or text is missing or too long") unless valid?(said)

    client.publish(TOPIC, said.slice("name", "text"))
  rescue JSON::JSONError
    client.close(1007, "a message is a JSON object with name and text")
  end

  private

  # A position is "epoch:offset". Offsets count the messages of all topics, and here there is one topic.
  def beginning
    epoch, offset = Heddle::PubSub.position(TOPIC).split(":")
    "#{epoch}:#{[offset.to_i - HISTORY, 0].max}"
  end

  def valid?(said)
    said.is_a?(Hash) && LENGTHS.all? { |key, size| said[key].is_a?(String) && size.cover?(said[key].length) }
  end
end

use Rack::Static, root: File.join(__dir__, "public"), urls: { "/" => "/index.html", "/chat.js" => "/chat.js" },
                  header_rules: [[:all, { "content-security-policy" => "script-src 'self'" }]]

run lambda { |env|
  next [404, {}, []] unless env["PATH_INFO"] == "/room"

  Heddle::WebSocket.upgrade(env, Room.new(Rack::Utils.parse_query(env["QUERY_STRING"])["since"]))
}
