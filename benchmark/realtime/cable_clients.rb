# frozen_string_literal: true

# cable_clients.rb PORT COUNT MESSAGES
#
# Opens connections of Action Cable with positions, subscribes each to the room, and prints how many are open. Then it
# waits until each has so many messages, which are numbers in ascending order, and prints a line of JSON: those that
# were missing, those that came twice or in another order, and the sockets that were closed.

require "heddle"
require "json"

PATIENCE = 60 # seconds without a message
ROOM = JSON.generate(channel: "Channels::Room")
port, count, messages = ARGV.map { |word| Integer(word) }

# One connection.
class CableClient
  attr_reader :numbers, :closed

  def initialize(port)
    @numbers = []
    @closed = false
    @socket = Heddle::WebSocket.connect("ws://127.0.0.1:#{port}/cable", protocols: %w[actioncable-v1-ext-json],
                                                                        timeout: PATIENCE)
    @socket.write(JSON.generate(command: "subscribe", identifier: ROOM))
    nil until read["type"] == "confirm_subscription"
  end

  # @return [void]
  def read_to_end(messages)
    while @numbers.size < messages && (message = read)
      @numbers << Integer(message["message"]) if message["message"] && message["identifier"]
    end
  end

  private

  def read
    text = @socket.read(timeout: PATIENCE)
    text ? JSON.parse(text) : (@closed = true) && nil
  rescue Heddle::TimeoutError
    nil
  end
end

$stdout.sync = true
Heddle.run do
  clients = Heddle.map(Array.new(count), limit: 50) { CableClient.new(port) }
  puts JSON.generate(opened: clients.size)
  Heddle.map(clients) { |client| client.read_to_end(messages) }
  wrong = clients.sum { |client| client.numbers.each_cons(2).count { |first, second| second != first + 1 } }
  puts JSON.generate(missing: clients.sum { |client| messages - client.numbers.uniq.size }, wrong:,
                     closed: clients.count(&:closed))
end
