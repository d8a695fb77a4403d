# frozen_string_literal: true

require_relative "../rails_app"
require "action_cable/engine"
require "solid_cable"

tables = schema_of("solid_cable", "lib/generators/solid_cable/install/templates/db/cable_schema.rb")
rails_application(schema: tables) do |config|
  FileUtils.mkdir_p(File.join(config.root, "config"))
  File.write(File.join(config.root, "config/cable.yml"),
             "production:\n  adapter: solid_cable\n  polling_interval: 0.02.seconds\n")
end
got = Queue.new
Heddle.run do
  adapter = ActionCable.server.pubsub
  Heddle.map(0...CLIENTS) do |number|
    adapter.subscribe("room #{number}", ->(message) { got << [number, message] })
  end
  sleep 0.2 # its listener notes where it begins with its first look
  Heddle.map(0...CLIENTS) { |number| ActionCable.server.broadcast("room #{number}", "hello #{number}") }
  sleep 0.01 until got.size == CLIENTS
end
messages = Array.new(CLIENTS) { got.pop }.sort
expected = (0...CLIENTS).map { |number| [number, "hello #{number}".to_json] }
proves("8 tasks subscribe and broadcast, each gets its own", messages == expected)
exit!(0) # its listener is a thread that polls
