# frozen_string_literal: true

require "test_helper"
require "server/server_helpers"
require "open3"
require "tempfile"

# Clients of HTTP/2 that others have written.
class Http2PeersTest < Minitest::Test
  include ServerHelpers

  LARGE = "0123456789abcdef" * 20_000
  APP = lambda do |env|
    body = env["PATH_INFO"] == "/large" ? LARGE : "hello #{env["rack.input"].read.to_s.bytesize}"
    [200, { "content-type" => "text/plain" }, [body]]
  end

  NODE = <<~JS
    const http2 = require("http2");
    const client = http2.connect(process.argv[2]);
    let open = 20;
    for (let i = 0; i < 20; i++) {
      const request = client.request({ ":path": "/", ":method": "POST" });
      let text = "";
      request.on("data", (bytes) => text += bytes);
      request.on("end", () => { console.log(text); if (--open === 0) client.close(); });
      request.end("x".repeat(1000 * i));
    }
  JS

  PYTHON = <<~PYTHON
    import socket, sys
    from h2.connection import H2Connection
    from h2.events import DataReceived, StreamEnded
    connection = H2Connection()
    wire = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    connection.initiate_connection()
    fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/large")]
    for stream in range(1, 21, 2):
        connection.send_headers(stream, fields, end_stream=True)
    sizes, ended = {}, 0
    while ended < 10:
        wire.sendall(connection.data_to_send())
        for event in connection.receive_data(wire.recv(65536)):
            if isinstance(event, DataReceived):
                sizes[event.stream_id] = sizes.get(event.stream_id, 0) + len(event.data)
                connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                ended += 1
    print(set(sizes.values()))
  PYTHON

  def output_of(*command)
    skip "#{command.first} is not installed" unless system("command -v #{command.first} > /dev/null")
    output, status = Open3.capture2e(*command)

    assert_predicate status, :success?, output
    output
  end

  def run_script(text, *command)
    Tempfile.create("peer") do |file|
      file.write(text)
      file.close
      output_of(command.first, file.path, *command.drop(1))
    end
  end

  def url(path = "/") = "http://127.0.0.1:#{port}#{path}"

  def test_nghttp
    serving(APP) do
      assert_equal LARGE, output_of("nghttp", url("/large"))
      assert_equal 3 * LARGE.bytesize, output_of("nghttp", "-m", "3", url("/large")).bytesize # in any order
      output = output_of("nghttp", "-nv", "-H", "priority: u=0", url)

      assert_match(/recv \(stream_id=\d+\) :status: 200/, output)
    end
  end

  def test_h2load
    serving(APP, lint: false) do
      output = output_of("h2load", "-n", "500", "-c", "5", "-m", "10", url)

      assert_match(/500 succeeded, 0 failed, 0 errored/, output)
    end
  end

  def test_node
    serving(APP) do
      lines = run_script(NODE, "node", url).lines(chomp: true)

      assert_equal Array.new(20) { |i| "hello #{1_000 * i}" }.sort, lines.sort
    end
  end

  def test_python_h2
    serving(APP) do
      skip "python3-h2 is not installed" unless system("/usr/bin/python3 -c 'import h2' 2> /dev/null")

      assert_equal "{320000}\n", run_script(PYTHON, "/usr/bin/python3", port.to_s)
    end
  end
end
