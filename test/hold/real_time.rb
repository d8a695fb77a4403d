# frozen_string_literal: true

require "json"
require_relative "../support/bundle"
require_relative "../support/web_socket_client"
require_relative "resources"

module Hold
  # Events of live pages whose client applies no patch.
  class LiveEvents < Resource
    EVENTS = 80
    private_constant :EVENTS

    private

    def begin_holding(socket)
      socket.timeout = PATIENCE
      socket.write(request("GET /page/"))
      head = socket.gets("\r\n\r\n") or raise EOFError
      token = socket.read(head[/^content-length: (\d+)/i, 1].to_i)[/data-live="([^"]+)"/, 1]
      client = WebSocketClient.new(socket, "/page/live", host: "a", origin: "http://a")
      client.text(JSON.generate({ token: }))
      EVENTS.times { client.text(JSON.generate({ event: "add", values: { by: "1" } })) }
    end
  end

  # Subscriptions of Action Cable.
  class CableCommands < Resource
    SUBSCRIPTIONS = 20
    FOLDER = File.expand_path("../rails", __dir__)
    GEMFILE = File.join(FOLDER, "bundles/rails_8_1/Gemfile")
    private_constant :SUBSCRIPTIONS, :FOLDER, :GEMFILE

    def self.application(_folder) = File.join(FOLDER, "support/cable.ru")
    def self.environment = Bundle.environment(GEMFILE).merge("RAILS_ENV" => "production")

    private

    def begin_holding(socket)
      socket.timeout = PATIENCE
      client = WebSocketClient.new(socket, "/cable?name=ada", host: "#{HOST}:#{@port}",
                                                              origin: "http://#{HOST}:#{@port}",
                                                              sec_websocket_protocol: "actioncable-v1-json")
      SUBSCRIPTIONS.times do |number|
        identifier = JSON.generate({ channel: "RoomChannel", room: number })
        client.text(JSON.generate({ command: "subscribe", identifier: }))
      end
    end
  end
end
