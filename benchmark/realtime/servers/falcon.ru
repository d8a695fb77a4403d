# frozen_string_literal: true

require "async/websocket/adapters/rack"

ROOM = Set.new

# An event stream as a member of the room: its fiber sends what is queued.
class Events
  def initialize = @queue = Async::Queue.new
  def write(message) = @queue.push("data: #{message.buffer}\n\n")
  def flush = nil

  def call(stream)
    ROOM << self
    while (event = @queue.dequeue)
      stream.write(event)
    end
  ensure
    ROOM.delete(self)
    stream.close
  end
end

# What async-websocket's own chat example does.
def serve(path, connection)
  ROOM << connection if path == "/room"
  while (message = connection.read)
    case path
    when "/echo" then connection.write(message)
    when "/room" then ROOM.each { |one| one.write(message) }
    end
    connection.flush if path == "/echo"
    ROOM.each(&:flush) if path == "/room"
  end
ensure
  ROOM.delete(connection)
end

run lambda { |env|
  path = env["PATH_INFO"]
  next [200, { "content-type" => "text/plain" }, ["hello\n"]] if path == "/hello"

  next [200, { "content-type" => "text/event-stream", "cache-control" => "no-store" }, Events.new] if path == "/events"

  Async::WebSocket::Adapters::Rack.open(env) { |connection| serve(path, connection) }
}
