# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"

# Pings of clients for which much output waits.
class WebSocketPingsTest < Minitest::Test
  include WebSocketHelpers

  # More than kernels keep for a connection.
  SIZE = 16_000_000
  PONG = 10

  # Sends much at "go", and says at any other message how much is pending.
  class Busy
    attr_reader :pending

    def initialize(size)
      @text = "x" * size
      @pending = Thread::Queue.new
    end

    def on_message(client, message)
      client.write(@text) if message == "go"
      @pending << client.pending
    end
  end

  # @yieldparam handler [Busy]
  # @yieldparam client [WebSocketClient] has got nothing so far
  def with_much_output(size: SIZE, http2: false)
    handler = Busy.new(size)
    serving(upgrading(handler), lint: false, http2_websockets: http2, websocket_output_limit: 2 * SIZE) do
      client = http2 ? join : dial
      client.text("go")
      handler.pending.pop(timeout: PATIENCE) # pings before it would be answered before it
      yield handler, client
    end
  end

  def join = H2WebSocketClient.new(H2WebSocketConnection.new(connect).connect("/")).tap { |one| @clients = [one] }

  # @return [Integer] bytes that were pending when the server had seen all pings
  def send_pings(client, handler, payloads)
    payloads.each { |payload| client.write(9, payload) }
    client.text("?")
    handler.pending.pop(timeout: PATIENCE)
  end

  # The first ping is answered behind what waits already, and the latest when that pong has left.
  def expect_pongs(client, size)
    assert_equal size, client.message.bytesize
    pongs = Array.new(2) { client.read }

    assert_equal [[PONG, "0"], [PONG, "49"]], pongs.map { |frame| [frame.opcode, frame.payload] }
    client.write(9, "again")

    assert_equal "again", client.read.payload
  end

  def test_the_latest_ping_is_answered_when_much_output_has_left
    with_much_output do |handler, client|
      send_pings(client, handler, (0...50).map(&:to_s))
      expect_pongs(client, SIZE)
    end
  end

  def test_the_latest_ping_is_answered_on_a_stream_of_http2
    with_much_output(size: 500_000, http2: true) do |handler, client|
      send_pings(client, handler, (0...50).map(&:to_s))
      expect_pongs(client, 500_000)
    end
  end

  def test_a_client_that_sends_pings_and_reads_nothing_takes_no_more_memory
    with_much_output do |handler, client|
      before = send_pings(client, handler, [])
      after = send_pings(client, handler, ["p" * 125] * 20_000)

      assert_operator after, :<=, before + 127
    end
  end
end
