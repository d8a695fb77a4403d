# frozen_string_literal: true

require_relative "../http/contestant"
require_relative "../http/contestants/heddle"
require_relative "../http/contestants/falcon"
require_relative "../http/contestants/iodine"
require_relative "../http/contestants/puma"
require_relative "../http2/contestant"

module Bench
  module Realtime
    # The servers, each with an application that does the same in its own way.
    module Contestants
      SERVERS = File.expand_path("servers", __dir__)

      # How a client asks for what the application does.
      Words = Data.define(:hello, :room, :echo)
      # A message, and that is all.
      PLAIN = Words.new(hello: "", room: ["", ""], echo: ["", ""])

      # The rows of Action Cable are not for servers that speak WebSocket alone.
      module WithoutCable
        include HTTP2::Contestant # over_tls

        def words(_path) = PLAIN
        def event_streams? = true
        def excludes(row_key) = ("speaks no Action Cable here" if row_key.start_with?("cable"))
      end

      # WebSockets by callbacks.
      class Heddle < HTTP::Contestants::Heddle
        include WithoutCable

        def self.variants = [new(config: File.join(SERVERS, "heddle.ru"))]

        def command(port, folder, ruby_flags)
          return super unless tls?

          certificate, key = HTTP2::Certificate.write(folder)
          [*super[0..-2], "tls://127.0.0.1:#{port}?cert=#{certificate}&key=#{key}"]
        end
      end

      # WebSockets by callbacks, in C, too.
      class Iodine < HTTP::Contestants::Iodine
        include WithoutCable

        def self.variants = [new(config: File.join(SERVERS, "iodine.ru"))]

        def command(port, folder, ruby_flags)
          return super unless tls?

          certificate, key = HTTP2::Certificate.write(folder)
          [*super[0..-2].map { |word| word.sub(/\Ahttp:/, "https:") }, "--tls-cert", certificate, "--tls-key", key,
           @config]
        end
      end

      # A fiber for each socket.
      class Falcon < HTTP::Contestants::Falcon
        include WithoutCable

        def self.variants = [new(config: File.join(SERVERS, "falcon.ru"))]
        def command(*) = super.map { |word| word.sub(%r{\Ahttp://}, "#{scheme}://") }
        def label = "Falcon, async-websocket"
        def version = "#{super}, async-websocket #{Gem::Specification.find_by_name("async-websocket").version}"
      end

      # Action Cable, whose messages are JSON with the channel's name. Each of its sockets gets a ping every 3 s.
      module WithCable
        ROOM = '{\"channel\":\"Channels::Room\"}'
        ECHO = '{\"channel\":\"Channels::Echo\"}'
        private_constant :ROOM, :ECHO

        def words(path)
          channel, action = %w[/room /cable].include?(path) ? [ROOM, "speak"] : [ECHO, "echo"]
          data = "{\\\"action\\\":\\\"#{action}\\\",\\\"text\\\":\\\""
          said = [%({"command":"message","identifier":"#{channel}","data":"#{data}), '\\"}"}']
          Words.new(hello: %({"command":"subscribe","identifier":"#{channel}"}), room: said, echo: said)
        end

        def tls? = false
        def event_streams? = false
      end

      # Action Cable's own server.
      class Cable < HTTP::Contestants::Puma
        include WithCable

        def self.variants = [new(config: File.join(SERVERS, "cable.ru"))]
        def key = "cable"
        def gem_name = "puma"
        def label = "Puma, Action Cable"
        def version = "#{super}, Action Cable #{Gem::Specification.find_by_name("actioncable").version}"

        def excludes(row_key)
          return "is measured without TLS" if row_key.start_with?("tls")

          "has no positions" if row_key == "cable-reload"
        end
      end

      # Heddle::Cable, with Action Cable's channels.
      class HeddleCable < HTTP::Contestants::Heddle
        include WithCable

        def self.variants = [new(config: File.join(SERVERS, "cable.ru"))]
        def key = "heddle-cable"
        def label = "Heddle, Action Cable"
        def environment = { "CABLE_ADAPTER" => "heddle" }
        def excludes(row_key) = ("is measured with Action Cable alone" unless row_key.start_with?("cable"))

        def version
          raise Unavailable, "the gem actioncable-next is not installed" if
            Gem::Specification.find_all_by_name("actioncable-next").empty?

          "#{super}, actioncable-next #{Gem::Specification.find_by_name("actioncable-next").version}"
        end
      end

      # Not a rival: C that sends a message to all sockets and does nothing else, which is what the kernel takes for it.
      class Floor < HTTP::Contestant
        def key = "floor"
        def label = "send() in C"
        def role = :baseline
        def tls? = false
        def event_streams? = false
        def words(_path) = PLAIN
        def excludes(row_key) = ("only sends messages to all" unless row_key == "publish")
        def command(port, _folder, _ruby_flags) = [HTTP::Native.program("fanout"), port.to_s]

        def version
          HTTP::Native.program("fanout")
          "no server: fanout.c"
        rescue Child::Failed => e
          raise Unavailable, e.message
        end
      end

      # What JavaScript reaches.
      class Node < HTTP::Contestant
        include WithoutCable

        MODULES = File.join(ROOT, "tmp", "bench", "node", "node_modules")

        def key = "ws"
        def label = "Node.js, ws"
        def environment = { "NODE_PATH" => MODULES }

        def version
          package = File.join(MODULES, "ws", "package.json")
          raise Unavailable, "npm has not installed ws" unless File.exist?(package)

          "#{`node --version`.strip}, ws #{JSON.parse(File.read(package))["version"]}"
        rescue Errno::ENOENT
          raise Unavailable, "node is not installed"
        end

        def command(port, folder, _ruby_flags)
          ["node", File.join(SERVERS, "ws.js"), port.to_s, *(HTTP2::Certificate.write(folder) if tls?)]
        end
      end
    end
  end
end
