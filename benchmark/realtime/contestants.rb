# frozen_string_literal: true

require_relative "../http/contestant"
require_relative "../http/contestants/heddle"
require_relative "../http/contestants/falcon"
require_relative "../http/contestants/iodine"
require_relative "../http/contestants/puma"

module Bench
  module Realtime
    # The servers, each with an application that does the same in its own way.
    module Contestants
      SERVERS = File.expand_path("servers", __dir__)

      # How a client asks for what the application does.
      Words = Data.define(:hello, :room, :echo)
      # A message, and that is all.
      PLAIN = Words.new(hello: "", room: ["", ""], echo: ["", ""])

      # WebSockets by callbacks.
      class Heddle < HTTP::Contestants::Heddle
        def self.variants = [new(config: File.join(SERVERS, "heddle.ru"))]
        def words(_path) = PLAIN
      end

      # WebSockets by callbacks, in C, too.
      class Iodine < HTTP::Contestants::Iodine
        def self.variants = [new(config: File.join(SERVERS, "iodine.ru"))]
        def words(_path) = PLAIN
      end

      # A fiber for each socket.
      class Falcon < HTTP::Contestants::Falcon
        def self.variants = [new(config: File.join(SERVERS, "falcon.ru"))]
        def label = "Falcon, async-websocket"
        def version = "#{super}, async-websocket #{Gem::Specification.find_by_name("async-websocket").version}"
        def words(_path) = PLAIN
      end

      # Action Cable, whose messages are JSON with the channel's name. Each of its sockets gets a ping every 3 s.
      class Cable < HTTP::Contestants::Puma
        ROOM = '{\"channel\":\"Channels::Room\"}'
        ECHO = '{\"channel\":\"Channels::Echo\"}'

        def self.variants = [new(config: File.join(SERVERS, "cable.ru"))]
        def key = "cable"
        def gem_name = "puma"
        def label = "Puma, Action Cable"
        def version = "#{super}, Action Cable #{Gem::Specification.find_by_name("actioncable").version}"

        def words(path)
          channel = path == "/room" ? ROOM : ECHO
          action = path == "/room" ? "speak" : "echo"
          data = "{\\\"action\\\":\\\"#{action}\\\",\\\"text\\\":\\\""
          said = [%({"command":"message","identifier":"#{channel}","data":"#{data}), '\\"}"}']
          Words.new(hello: %({"command":"subscribe","identifier":"#{channel}"}), room: said, echo: said)
        end
      end

      # What JavaScript reaches.
      class Node < HTTP::Contestant
        MODULES = File.join(ROOT, "tmp", "bench", "node", "node_modules")

        def key = "ws"
        def label = "Node.js, ws"
        def words(_path) = PLAIN
        def environment = { "NODE_PATH" => MODULES }

        def version
          package = File.join(MODULES, "ws", "package.json")
          raise Unavailable, "npm has not installed ws" unless File.exist?(package)

          "#{`node --version`.strip}, ws #{JSON.parse(File.read(package))["version"]}"
        rescue Errno::ENOENT
          raise Unavailable, "node is not installed"
        end

        def command(port, _folder, _ruby_flags) = ["node", File.join(SERVERS, "ws.js"), port.to_s]
      end
    end
  end
end
