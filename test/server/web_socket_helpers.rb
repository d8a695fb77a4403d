# frozen_string_literal: true

require "server/server_helpers"
require "support/web_socket_client"

# A server whose application makes WebSockets, and clients of it.
module WebSocketHelpers
  include ServerHelpers

  # Answers each message with itself, and notes what it is called for.
  class Echo
    attr_reader :calls

    def initialize = @calls = Thread::Queue.new

    def on_open(client) = @calls << [:open, client.open?]

    def on_message(client, message)
      @calls << [:message, message, message.encoding]
      client.write(message)
    end

    def on_close(client) = @calls << [:close, client.close_code, client.close_reason, client.open?]
  end

  def upgrading(handler)
    lambda do |env|
      next [404, {}, ["no WebSocket"]] unless env["rack.upgrade?"] == :websocket

      env["rack.upgrade"] = handler
      [101, {}, []]
    end
  end

  def dial(path = "/", **)
    WebSocketClient.new(connect, path, **).tap { |client| (@clients ||= []) << client }
  end

  # A server that stops waits for clients that have not closed.
  def serving(app, **)
    super do
      yield
    ensure
      @clients&.each { |client| client.io.close }
    end
  end
end
