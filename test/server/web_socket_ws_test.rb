# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "json"
require "open3"

# The JavaScript package `ws`, the most widely used WebSocket client outside of browsers.
class WebSocketWsTest < Minitest::Test
  include WebSocketHelpers

  # bin/setup installs it.
  FOLDER = File.expand_path("../../vendor/node/node_modules/ws", __dir__)

  PROGRAM = <<~JS
    const WebSocket = require(process.argv[1]);
    const [url, perMessageDeflate] = JSON.parse(process.argv[2]);
    const socket = new WebSocket(url, { perMessageDeflate });
    const sent = ["grüße", Buffer.from([255, 0]), Array.from({ length: 20000 }, (_, i) => i * 7919).join(), "", "one two"];
    const found = [];
    socket.on("open", () => {
      sent.slice(0, 4).forEach((message) => socket.send(message));
      socket.send("one ", { fin: false });
      socket.send("two", { fin: true });
    });
    socket.on("message", (data, binary) => {
      found.push(binary ? [...data] : data.toString());
      if (found.length === sent.length) socket.close(4001, "bye");
    });
    socket.on("close", (code) => {
      const right = found.map((message, i) => Array.isArray(message) ? message.join() === "255,0" : message === sent[i]);
      console.log(JSON.stringify({ right, code, extensions: socket.extensions }));
    });
    socket.on("error", (error) => { console.log(JSON.stringify({ error: error.message })); process.exit(); });
  JS

  def run_ws(deflate: false, path: "/")
    skip "the package ws is not installed: bin/setup" unless File.directory?(FOLDER)
    arguments = JSON.generate(["ws://127.0.0.1:#{port}#{path}", deflate])
    output, status = Open3.capture2e("node", "-e", PROGRAM, FOLDER, arguments)

    assert_predicate status, :success?, output
    JSON.parse(output, symbolize_names: true)
  end

  def test_messages_fragments_and_the_close_handshake
    serving(upgrading(Echo.new), lint: false) do
      assert_equal({ right: [true] * 5, code: 4001, extensions: "" }, run_ws)
    end
  end

  def test_compressed_messages
    serving(upgrading(Echo.new), lint: false, websocket_deflate: true) do
      found = run_ws(deflate: true)

      assert_equal [[true] * 5, 4001], found.values_at(:right, :code)
      assert_match(/\Apermessage-deflate/, found[:extensions])
    end
  end

  def test_a_refused_handshake_is_an_error_with_its_status
    serving(->(_) { [403, {}, ["no"]] }, lint: false) do
      assert_equal({ error: "Unexpected server response: 403" }, run_ws)
    end
  end
end
