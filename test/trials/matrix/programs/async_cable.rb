# frozen_string_literal: true

gem "async-cable"
require "async"
require "heddle/async"
require "heddle/server"
require "async/cable/middleware"
require "async/http/endpoint"
require "async/websocket/client"
require "logger"
require "stringio"

# A room: it gives what one client says to all.
class RoomChannel < ActionCable::Channel::Base
  def subscribed = stream_from("room #{params[:room]}")

  def speak(data) = connection.broadcast("room #{params[:room]}", data["text"])
end

# @return [ActionCable::Server::Base]
def cable_server
  ActionCable::Server::Base.new(config: ActionCable::Server::Configuration.new).tap do |server|
    server.config.disable_request_forgery_protection = true
    server.config.logger = Logger.new(nil)
    server.config.cable = { "adapter" => "async" }
  end
end

# Reads until the message of which the block is true.
def await(connection)
  while (message = connection.read)
    found = message.parse
    return found if yield(found)
  end
end

def send_command(connection, **command)
  Protocol::WebSocket::TextMessage.generate(command).send(connection)
  connection.flush
end

# @return [String] what the room of this number got
def speak_in_room(connection, number, meeting)
  identifier = JSON.generate(channel: "RoomChannel", room: number)
  send_command(connection, command: "subscribe", identifier:)
  await(connection) { |one| one[:type] == "confirm_subscription" }
  meeting.wait
  data = JSON.generate(action: "speak", text: "hello #{number}")
  send_command(connection, command: "message", identifier:, data:)
  await(connection) { |one| one[:identifier] == identifier && one[:message] }[:message]
end

configuration = Heddle::Server::Configuration.new(bind: ["127.0.0.1:0"], access_log: false)
server = Heddle::Server.new(configuration, log: Heddle::Server::Log.new(output: StringIO.new, access: false))
endpoint = Async::HTTP::Endpoint.parse("http://127.0.0.1:#{server.open.first[/\d+\z/]}/cable")
not_found = ->(_) { [404, {}, []] }
Thread.new { server.run(Async::Cable::Middleware.new(not_found, server: cable_server)) }.report_on_exception = true
meeting = Meeting.new
heard = clients do |number|
  Async::WebSocket::Client.connect(endpoint) { |connection| speak_in_room(connection, number, meeting) }
end
proves("8 sockets at once, each gets its own room's messages",
       heard == Array.new(CLIENTS) { |number| "hello #{number}" })
exit!(0) # Action Cable has threads that wait
