# frozen_string_literal: true

require "test_helper"
require "server/tls_helpers"
require "tempfile"

# HTTP/2 with other projects' clients.
class Http2PeersTest < Minitest::Test
  include TLSHelpers

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

  # undici's HTTP/2 is for TLS alone.
  UNDICI = <<~'JS'
    const { Agent, request } = require(process.argv[3]);
    const connect = { rejectUnauthorized: false };
    const dispatcher = new Agent({ allowH2: true, connect, connections: 1, pipelining: 20 });
    const post = async (size) => {
      const options = { dispatcher, method: "POST", body: "x".repeat(size) };
      const { statusCode, body } = await request(process.argv[2], options);
      return `${statusCode} ${await body.text()}`;
    };
    (async () => {
      const texts = await Promise.all(Array.from({ length: 20 }, (_, i) => post(1000 * i)));
      const { body } = await request(process.argv[2] + "large", { dispatcher });
      console.log([...texts, (await body.text()).length].join("\n"));
      await dispatcher.close();
    })();
  JS

  HTTPX = <<~PYTHON
    import httpx, sys
    with httpx.Client(http1=False, http2=True) as client:
        response = client.get(sys.argv[1] + "large")
        print(response.http_version, response.status_code, len(response.content))
        for size in range(0, 200_000, 40_000):
            print(client.post(sys.argv[1], content=b"x" * size).text)
        print(client.post(sys.argv[1], content=(b"y" * 10_000 for _ in range(5))).text)
  PYTHON

  ASYNC = <<~'RUBY'
    require "async"
    require "async/http/client"
    require "async/http/endpoint"
    require "async/http/protocol/http2"
    Sync do
      protocol = Async::HTTP::Protocol::HTTP2
      client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(ARGV.first, protocol:), protocol:, retries: 0)
      tasks = Array.new(20) { |i| Async { client.post("/", {}, ["x" * (1_000 * i)]).read } }
      puts tasks.map(&:wait)
      response = client.get("/large")
      puts "#{response.version} #{response.read.bytesize}"
    ensure
      client&.close
    end
  RUBY

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

  def run_script(text, *interpreter, arguments: [url])
    Tempfile.create("peer") do |file|
      file.write(text)
      file.close
      output_of(*interpreter, file.path, *arguments)
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
      lines = run_script(NODE, "node").lines(chomp: true)

      assert_equal Array.new(20) { |i| "hello #{1_000 * i}" }.sort, lines.sort
    end
  end

  # Installed by bin/setup --system.
  UNDICI_FOLDER = File.expand_path("../../vendor/node/node_modules/undici", __dir__)

  def test_undici
    skip "undici is not installed" unless File.directory?(UNDICI_FOLDER)

    serving_tls(APP) do
      lines = run_script(UNDICI, "node", arguments: ["https://localhost:#{port}/", UNDICI_FOLDER]).lines(chomp: true)

      assert_equal [*Array.new(20) { |i| "200 hello #{1_000 * i}" }, "320000"], lines
    end

    assert_equal ["HTTP/2"], output.string.scan(%r{HTTP/[\d.]+}).uniq # the log is complete when the server has ended
  end

  def test_httpx
    serving(APP) do
      skip "python3-httpx is not installed" unless system("/usr/bin/python3 -c 'import httpx' 2> /dev/null")
      lines = run_script(HTTPX, "/usr/bin/python3").lines(chomp: true)

      assert_equal "HTTP/2 200 320000", lines.shift
      assert_equal ["hello 0", "hello 40000", "hello 80000", "hello 120000", "hello 160000", "hello 50000"], lines
    end
  end

  # protocol-http2 in the gem async-http.
  def test_async_http
    serving(APP) do
      support = File.expand_path("../../bin/support/gem_paths.rb", __dir__)
      lines = run_script(ASYNC, RbConfig.ruby, "-W:no-experimental", "-r#{support}").lines(chomp: true)

      assert_equal [*Array.new(20) { |i| "hello #{1_000 * i}" }, "HTTP/2 320000"], lines
    end
  end

  def test_python_h2
    serving(APP) do
      skip "python3-h2 is not installed" unless system("/usr/bin/python3 -c 'import h2' 2> /dev/null")

      assert_equal "{320000}\n", run_script(PYTHON, "/usr/bin/python3", arguments: [port.to_s])
    end
  end
end
