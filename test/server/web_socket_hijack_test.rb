# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "support/ws_client"

# Libraries that take the connection over and speak WebSocket themselves: by `rack.hijack` faye-websocket, which runs
# EventMachine in a thread of its own, and websocket-driver, which it and Action Cable use; by `rack.protocol`
# async-websocket.
class WebSocketHijackTest < Minitest::Test
  include WebSocketHelpers
  include WsClient

  ENDS = Thread::Queue.new

  # As the page of faye-websocket says.
  FAYE = lambda do |env|
    next [404, {}, []] unless Faye::WebSocket.websocket?(env)

    socket = Faye::WebSocket.new(env)
    socket.on(:message) { |event| socket.send(event.data) }
    socket.on(:close) { |event| ENDS << [event.code, event.reason] }
    socket.rack_response
  end

  # What websocket-driver asks of its socket.
  Wire = Struct.new(:env, :io) do
    def write(bytes) = io.write(bytes)
    def url = "ws://#{env["HTTP_HOST"]}#{env["REQUEST_URI"]}"
  end

  DRIVER = lambda do |env|
    io = env["rack.hijack"].call
    driver = WebSocket::Driver.rack(Wire.new(env, io))
    driver.on(:message) { |one| driver.public_send(one.data.encoding == Encoding::BINARY ? :binary : :text, one.data) }
    driver.on(:close) { |event| ENDS << [event.code, event.reason] }
    driver.start
    Thread.new do
      loop { driver.parse(io.readpartial(65_536)) }
    rescue EOFError, SystemCallError
      io.close
    end
    [200, {}, []]
  end

  # As async-websocket's guide says.
  ASYNC = lambda do |env|
    Async::WebSocket::Adapters::Rack.open(env) do |connection|
      while (message = connection.read)
        connection.write(message)
        connection.flush
      end
    rescue Protocol::WebSocket::ClosedError => e
      ENDS << [e.code, e.message]
    end
  end

  def setup = ENDS.clear

  def use(gem, file = gem)
    skip "needs the gem #{gem}: bin/setup" if Gem::Specification.find_all_by_name(gem).empty?
    require file
  end

  # A real client, and one that looks at the frames.
  def check(app)
    serving(app, lint: false) do
      assert_equal({ right: [true] * 5, pong: "there?", code: 4001, extensions: "" }, run_ws(port))
      assert_equal [4001, "bye"], ENDS.pop(timeout: PATIENCE)
      client = dial
      client.write(9, "ping")
      pong = client.read

      assert_equal [10, "ping"], [pong.opcode, pong.payload]
      large = "x" * 1_000_000
      client.text(large)

      assert_equal large, client.message
      client.close(4002, "enough")

      assert_equal 4002, client.closing.code
      assert_equal [4002, "enough"], ENDS.pop(timeout: PATIENCE)
    end
  end

  def test_faye_websocket
    use("faye-websocket", "faye/websocket")
    check(FAYE)
  ensure
    EventMachine.stop if defined?(EventMachine) && EventMachine.reactor_running?
  end

  def test_websocket_driver
    use("websocket-driver", "websocket/driver")
    check(DRIVER)
  end

  def test_async_websocket
    use("async-websocket", "async/websocket/adapters/rack")
    check(ASYNC)
  end
end
