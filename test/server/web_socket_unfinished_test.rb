# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"

# Messages that clients begin and don't finish.
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

      assert_closed clients.first, "too many messages are unfinished"
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

      assert_closed many.first, "too many messages are unfinished"
      honest.write(0, "and finished", final: true)

      assert_equal "begun and finished", honest.read.payload
    end
  end

  private

  def assert_closed(client, reason)
    frame = client.read

    assert_equal [8, 1008, reason], [frame.opcode, frame.code, frame.reason]
  end
end
