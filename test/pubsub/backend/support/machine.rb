# frozen_string_literal: true

require "heddle"
require "json"

# A machine of the tests: a process with a history of its own, which follows the backend. It writes what its subscriber
# is given, a line each, and publishes what it reads.
#
#     ruby machine.rb URL TOPIC [SINCE]
url, topic, since = ARGV
$stdout.sync = true
Heddle::PubSub.server = url
Heddle::PubSub::History.open(16 << 20, 1000, 300)

publisher = Thread.new do
  while (line = $stdin.gets)
    topic_to, data = JSON.parse(line)
    begin
      puts [:published, data.bytesize, Heddle::PubSub.publish(topic_to, data)].to_json
    rescue Heddle::PubSub::UnreachableError => e
      puts [:refused, e.message].to_json
    end
  end
end

Heddle.run do
  Heddle::PubSub.subscribe(topic, since:) do |message|
    puts [:message, message.data&.dup&.force_encoding("UTF-8"), message.position].to_json
  end
  puts [:ready, Heddle::PubSub.position(topic)].to_json
  sleep while publisher.alive?
end
