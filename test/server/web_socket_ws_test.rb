# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "support/ws_client"

# The package `ws` of JavaScript as a client of WebSockets with callbacks.
class WebSocketWsTest < Minitest::Test
  include WebSocketHelpers
  include WsClient

  def test_messages_fragments_pings_and_the_close_handshake
    serving(upgrading(Echo.new), lint: false) do
      assert_equal({ right: [true] * 5, pong: "there?", code: 4001, extensions: "" }, run_ws(port))
    end
  end

  def test_compressed_messages
    serving(upgrading(Echo.new), lint: false, websocket_deflate: true) do
      found = run_ws(port, deflate: true)

      assert_equal [[true] * 5, "there?", 4001], found.values_at(:right, :pong, :code)
      assert_match(/\Apermessage-deflate/, found[:extensions])
    end
  end

  def test_a_refused_handshake_is_an_error_with_its_status
    serving(->(_) { [403, {}, ["no"]] }, lint: false) do
      assert_equal({ error: "Unexpected server response: 403" }, run_ws(port))
    end
  end
end
