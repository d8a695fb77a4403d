# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"
require "server/tls_helpers"

# WebSockets over TLS.
class WebSocketTLSTest < Minitest::Test
  include WebSocketHelpers
  include TLSHelpers

  def test_messages_come_back_and_the_close_handshake_is_answered
    handler = Echo.new
    serving_tls(upgrading(handler), lint: false) do
      client = WebSocketClient.new(connect_tls(name: "127.0.0.1"), host: "localhost")
      ["a", "grüße", "x" * 10_000].each do |text|
        client.text(text)

        assert_equal text, client.message
      end
      client.close(4001, "bye")

      assert_equal 4001, client.closing.code
      assert_predicate client, :ended?
      calls = Array.new(5) { handler.calls.pop(timeout: PATIENCE) }

      assert_equal [:close, 4001, "bye", false], calls.last
    ensure
      client&.io&.close
    end
  end
end
