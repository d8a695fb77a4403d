# frozen_string_literal: true

require "async/websocket/adapters/rack"

ROOM = Set.new

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

  Async::WebSocket::Adapters::Rack.open(env) { |connection| serve(path, connection) }
}
