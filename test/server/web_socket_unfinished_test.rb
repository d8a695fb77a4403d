# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"

# Messages that clients begin and don't finish, or that wait for their handlers.
class WebSocketUnfinishedTest < Minitest::Test
  include WebSocketHelpers

  SLOW = "the message came too slowly"
  # Bytes of a message that is longer than what is counted for all at least.
  SIZE = 5_000_000

  def test_message_below_the_least_rate_closes_the_socket
    serving(upgrading(Echo.new), lint: false, websocket_ping: 0, body_grace: 0.05, body_rate: 1_000_000) do
      client = dial
      client.text("whole")

      assert_equal "whole", client.read.payload
      client.write(1, "a part", final: false)

      assert_closed client, SLOW
    end
  end

  # Control frames between its parts do not count.
  def test_message_that_pauses_closes_the_socket_however_fast_it_came
    serving(upgrading(Echo.new), lint: false, body_grace: 0.2, body_rate: 1, body_timeout: 0.2) do
      client = dial
      client.write(1, "x" * 1_000, final: false)
      client.write(9, "ping")

      assert_equal 10, client.read.opcode
      assert_closed client, SLOW
    end
  end

  def test_slow_message_over_http2_closes_the_socket
    serving(upgrading(Echo.new), lint: false, http2_websockets: true, body_grace: 0.05, body_rate: 1_000_000) do
      client = H2WebSocketClient.new(H2WebSocketConnection.new(connect).connect("/"))
      @clients = [client]
      client.write(1, "a part", final: false)

      assert_closed client, SLOW
    end
  end

  def test_message_in_time_is_delivered
    serving(upgrading(Echo.new), lint: false, body_grace: 300) do
      client = dial
      client.write(1, "a ", final: false)
      client.write(0, "whole", final: true)

      assert_equal "a whole", client.read.payload
    end
  end

  # There is room for four messages.
  def test_oldest_unfinished_message_ends_while_all_have_too_many_bytes
    serving(upgrading(Echo.new), lint: false, body_grace: 300, websocket_message_limit: SIZE) do
      clients = Array.new(6) do
        dial.tap { |client| client.raw([0x02, 0x80 | 127, SIZE, 0].pack("CCQ>N") + ("x" * SIZE)) }
      end

      assert_closed clients.first, "the server has too many unfinished messages"
      clients.last.write(0, "", final: true, mask: "\0\0\0\0")

      assert_equal SIZE, clients.last.read.payload.bytesize
    end
  end

  # It has more bytes than all others together.
  def test_one_client_with_many_unfinished_messages_ends_none_of_others
    serving(upgrading(Echo.new), lint: false, body_grace: 300, websocket_message_limit: SIZE,
                                 trusted_proxies: []) do
      honest = dial.tap { |client| client.write(1, "begun ", final: false) }
      many = Array.new(6) do
        io = TCPSocket.new("127.0.0.1", port, "127.0.0.66")
        WebSocketClient.new(io).tap do |client|
          @clients << client
          client.raw([0x02, 0x80 | 127, SIZE, 0].pack("CCQ>N") + ("x" * SIZE))
        end
      end

      assert_closed many.first, "the server has too many unfinished messages"
      honest.write(0, "and finished", final: true)

      assert_equal "begun and finished", honest.read.payload
    end
  end

  # Handles no message before the test allows it.
  class Busy
    attr_reader :begun

    def initialize
      @begun = Thread::Queue.new
      @allowed = Thread::Queue.new
    end

    def on_message(_client, message)
      @begun << message.bytesize
      @allowed.pop
    end

    def allow_all = @allowed.close
  end

  # There is room for four messages, of which one address has half.
  def test_messages_of_an_address_that_wait_for_their_handlers_leave_room_to_others
    handler = Busy.new
    serving(upgrading(handler), lint: false, websocket_message_limit: SIZE, trusted_proxies: []) do
      many = Array.new(3) { busy_from("127.0.0.66", handler) }
      honest = busy_from("127.0.0.67", handler)
      many.first(2).each { |client| send_whole(client) }
      until_received((2 * SIZE) + 20)
      many.last.write(2, "third")
      send_whole(honest)
      until_received((3 * SIZE) + 20)
      handler.allow_all

      assert_equal [5, SIZE, SIZE, SIZE], Array.new(4) { handler.begun.pop(timeout: PATIENCE) }.sort
    end
  end

  def test_fiber_that_reads_gets_its_messages_while_those_of_others_wait
    handler = Busy.new
    app = lambda do |env|
      next upgrading(handler).call(env) unless env["PATH_INFO"] == "/fiber"

      Heddle::WebSocket.serve(env) { |socket| socket.write(socket.read.bytesize.to_s) }
    end
    serving(app, lint: false, websocket_message_limit: SIZE, trusted_proxies: []) do
      Array.new(2) { busy_from("127.0.0.66", handler) }.each { |client| send_whole(client) }
      until_received((2 * SIZE) + 10)
      reader = dial_from("127.0.0.66", "/fiber")
      send_whole(reader)

      assert_equal SIZE.to_s, reader.read.payload
      handler.allow_all
    end
  end

  # The socket was paused because its own messages waited, and continues in the loop's next ticks.
  def test_fiber_that_has_read_what_waited_gets_further_messages_while_those_of_others_wait
    handler = Busy.new
    release = Thread::Queue.new
    app = lambda do |env|
      next upgrading(handler).call(env) unless env["PATH_INFO"] == "/fiber"

      Heddle::WebSocket.serve(env) do |socket|
        release.pop
        socket.write(Array.new(130) { socket.read }.last)
      end
    end
    serving(app, lint: false, websocket_message_limit: SIZE, trusted_proxies: [], websocket_ping: 0) do
      reader = dial_from("127.0.0.66", "/fiber")
      130.times { |number| reader.write(2, format("%03d", number)) }
      until_received(128 * 3)
      Array.new(2) { busy_from("127.0.0.66", handler) }.each { |client| send_whole(client) }
      until_received((128 * 3) + (2 * SIZE) + 10)
      release.close

      assert_equal "129", reader.read.payload
      handler.allow_all
    end
  end

  private

  def dial_from(address, path = "/")
    io = TCPSocket.new("127.0.0.1", port, address, 0)
    WebSocketClient.new(io, path).tap { |client| (@clients ||= []) << client }
  end

  def send_whole(client) = client.raw([0x82, 0x80 | 127, SIZE, 0].pack("CCQ>N") + ("x" * SIZE))

  # A client whose handler is busy with a message of five bytes.
  def busy_from(address, handler)
    dial_from(address).tap do |client|
      client.write(2, "first")
      handler.begun.pop(timeout: PATIENCE)
    end
  end

  def until_received(bytes) = until_statistics { server.engine.websockets[:received_bytes] == bytes }

  def assert_closed(client, reason)
    frame = client.read

    assert_equal [8, 1008, reason], [frame.opcode, frame.code, frame.reason]
  end
end
