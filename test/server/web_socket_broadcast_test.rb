# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"

# A message of a topic is sent at once to sockets that have nothing queued.
class WebSocketBroadcastTest < Minitest::Test
  include WebSocketHelpers

  # Has one subscription.
  class Room < Echo
    def on_open(client)
      client.subscribe("broadcast room")
      super
    end
  end

  def publish(data) = Heddle::PubSub.publish("broadcast room", data)

  # Until the handler was called so.
  def wait_for(handler, *call)
    loop do
      found = handler.calls.pop(timeout: PATIENCE) or flunk("#{call} did not come")
      break if found.first(call.size) == call
    end
  end

  # A client behind a window of a few kB, and one that reads each message before the next one is published.
  def test_messages_that_the_kernel_takes_in_part_arrive_whole_and_in_order
    handler = Room.new
    serving(upgrading(handler), lint: false, websocket_output_limit: 64 << 20) do
      socket = Socket.new(:INET, :STREAM).tap { |one| one.setsockopt(:SOCKET, :RCVBUF, 4_096) }
      socket.connect(Addrinfo.tcp("127.0.0.1", port))
      clients = [dial, WebSocketClient.new(socket)]
      2.times { wait_for(handler, :open) }
      texts = Array.new(4) { |i| Array.new(400_000) { |number| number + i }.join }
      read = texts.map { |text| publish(text) && clients.first.message }

      whole = texts.zip(read).map { |text, message| [text == message, text == clients.last.message] }

      assert_equal [[true, true]] * 4, whole
    ensure
      socket&.close
    end
  end

  def test_a_handler_is_called_when_a_broadcast_is_sent
    handler = Class.new(Room) { def on_drained(client) = @calls << [:drained, client.pending] }.new
    serving(upgrading(handler), lint: false, websocket_ping: 3_600) do # a ping drains, too
      client = dial
      wait_for(handler, :open)
      2.times do |number|
        publish(number.to_s)
        assert_equal number.to_s, client.message
        wait_for(handler, :drained, 0)
      end
    end
  end

  # In the tick in which its message is sent, one client is gone, and the loop may not know it yet.
  def test_a_client_that_has_left_does_not_affect_others
    gone = nil
    handler = Class.new(Room) do
      define_method(:on_message) do |client, message|
        gone.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
        gone.close
        client.publish("broadcast room", message)
      end
    end.new
    serving(upgrading(handler), lint: false) do
      clients = [dial, (gone = dial.io) && dial]
      3.times { wait_for(handler, :open) }
      clients.first.text("one is gone")

      assert_equal(["one is gone"] * 2, clients.map(&:message))
      wait_for(handler, :close, 1006)
    end
  end
end
