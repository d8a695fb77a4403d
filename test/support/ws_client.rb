# frozen_string_literal: true

require "json"
require "open3"

# The JavaScript package `ws`, the most widely used WebSocket client outside of browsers: sends messages of each kind
# and a ping to a server that sends messages back, and closes with 4001 when everything has come.
module WsClient
  # bin/setup installs it.
  FOLDER = File.expand_path("../../vendor/node/node_modules/ws", __dir__)

  PROGRAM = <<~JS
    const WebSocket = require(process.argv[1]);
    const [url, perMessageDeflate] = JSON.parse(process.argv[2]);
    const socket = new WebSocket(url, { perMessageDeflate });
    const sent = ["grüße", Buffer.from([255, 0]), Array.from({ length: 20000 }, (_, i) => i * 7919).join(), "", "one two"];
    const found = [];
    let pong;
    const closeWhenAllCame = () => { if (pong !== undefined && found.length === sent.length) socket.close(4001, "bye"); };
    socket.on("open", () => {
      sent.slice(0, 4).forEach((message) => socket.send(message));
      socket.ping("there?");
      socket.send("one ", { fin: false });
      socket.send("two", { fin: true });
    });
    socket.on("message", (data, binary) => {
      found.push(binary ? [...data] : data.toString());
      closeWhenAllCame();
    });
    socket.on("pong", (data) => { pong = data.toString(); closeWhenAllCame(); });
    socket.on("close", (code) => {
      const right = found.map((message, i) => Array.isArray(message) ? message.join() === "255,0" : message === sent[i]);
      console.log(JSON.stringify({ right, pong, code, extensions: socket.extensions }));
    });
    socket.on("error", (error) => { console.log(JSON.stringify({ error: error.message })); process.exit(); });
  JS

  # @return [Hash] `right` for each message that came back, `pong`, `code` and `extensions`, or `error`
  def run_ws(port, deflate: false, path: "/")
    skip "the package ws is not installed: bin/setup" unless File.directory?(FOLDER)
    arguments = JSON.generate(["ws://127.0.0.1:#{port}#{path}", deflate])
    output, status = Open3.capture2e("node", "-e", PROGRAM, FOLDER, arguments)

    assert_predicate status, :success?, output
    JSON.parse(output, symbolize_names: true)
  end
end
