# frozen_string_literal: true

require "test_helper"
require "open3"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"
require "zlib"

# permessage-deflate (RFC 7692) with clients that offer it, and with those that do not. Messages and frames:
# web_socket_cases_test.rb.
class WebSocketDeflateTest < Minitest::Test
  include WebSocketHelpers

  OFFER = "permessage-deflate; client_max_window_bits"
  LONG = Array.new(200) { |number| "message #{number} " }.join.freeze

  # Answers each message with itself, and subscribes to a topic.
  class Subscriber < Echo
    def on_open(client)
      client.subscribe("news", as: :text)
      client.write("ready")
    end
  end

  def offering = dial(sec_websocket_extensions: OFFER)

  def with_deflate(handler = Echo.new, **, &) = serving(upgrading(handler), lint: false, websocket_deflate: true, **, &)

  def inflated(frame)
    inflater = Zlib::Inflate.new(-Zlib::MAX_WBITS)
    inflater.inflate(frame.payload + "\0\0\xff\xff".b).force_encoding("UTF-8")
  ensure
    inflater.close
  end

  def extensions_of(client) = client.head[/^sec-websocket-extensions: (.*)\r$/i, 1]

  def test_long_messages_are_compressed_and_short_ones_are_not
    with_deflate do
      client = offering
      client.text(LONG)
      frame = client.read

      assert_equal "permessage-deflate; server_no_context_takeover; client_no_context_takeover", extensions_of(client)
      assert_equal [4, LONG], [frame.rsv, inflated(frame)]
      assert_operator frame.payload.bytesize, :<, LONG.bytesize / 2
      client.text("x" * 255)

      assert_equal [0, "x" * 255], [client.read.rsv, "x" * 255]
      # No message refers to the one before it.
      2.times { client.text(LONG) }

      assert_equal [LONG, LONG], Array.new(2) { inflated(client.read) }
    end
  end

  def test_bytes_that_do_not_get_smaller_are_sent_as_they_are
    noise = Random.new(1).bytes(5_000)
    with_deflate do
      client = offering
      client.binary(noise)
      frame = client.read

      assert_equal [0, noise], [frame.rsv, frame.payload]
    end
  end

  def test_a_client_that_offers_nothing_gets_nothing_compressed_and_may_not_compress
    with_deflate do
      client = dial
      client.text(LONG)

      assert_equal [nil, 0], [extensions_of(client), client.read.rsv]
      client.write(nil, "\xf2\x48\xcd\xc9\xc9\x07\x00".b, first: 0xc1)

      assert_equal 1002, client.closing.code
    end
  end

  def test_compression_is_off_by_default
    serving(upgrading(Echo.new), lint: false) do
      client = offering
      client.text(LONG)

      assert_equal [nil, 0], [extensions_of(client), client.read.rsv]
    end
  end

  def test_the_application_cannot_claim_extensions
    app = lambda do |env|
      env["rack.upgrade"] = Echo.new
      [101, { "sec-websocket-extensions" => "permessage-deflate; server_max_window_bits=8" }, []]
    end
    serving(app, lint: false) { assert_nil extensions_of(offering) }
  end

  def test_a_broadcast_is_the_same_bytes_for_all_that_have_negotiated_it
    with_deflate(Subscriber.new) do
      clients = [offering, offering, dial]
      clients.each { |client| assert_equal "ready", client.message }
      Heddle::PubSub.publish("news", LONG)
      compressed, same, plain = clients.map(&:read)

      assert_equal [4, LONG], [compressed.rsv, inflated(compressed)]
      assert_equal compressed, same
      assert_equal [0, LONG], [plain.rsv, plain.payload.force_encoding("UTF-8")]
      Heddle::PubSub.publish("news", "short")

      assert_equal [0] * 3, clients.map { |client| client.read.rsv }
    end
  end

  # A binary message.
  def send_compressed(client, text)
    bytes = Zlib::Deflate.new(9, -Zlib::MAX_WBITS).deflate(text, Zlib::SYNC_FLUSH).byteslice(0...-4)
    client.write(nil, bytes, first: 0xc2)
  end

  # Beyond the limit of messages, and below a higher one beyond the ratio.
  def test_a_bomb_closes_its_socket_alone
    { 262_144 => [300_000, "the message is too big"],
      1 << 20 => [900_000, "the compression ratio of the message is too high"] }.each do |limit, (size, reason)|
      with_deflate(websocket_message_limit: limit) do
        other = offering
        client = offering
        send_compressed(client, "\0" * size)
        close = client.closing

        assert_equal [1009, reason], [close.code, close.reason]
        other.text(LONG)

        assert_equal LONG, inflated(other.read)
      end
    end
  end

  # Nothing waits for its handler, so the loop would inflate all that has come, a thousand times as much, at once.
  def test_a_message_that_the_handler_does_not_take_is_not_inflated
    handler = Class.new { def on_open(client) = client.write("ready") }.new
    with_deflate(handler) do
      client = offering
      client.read
      send_compressed(client, "\0" * 300_000)
      client.write(9, "still here")

      assert_equal "still here", client.read.payload
    end
  end

  def test_ordinary_messages_with_much_repetition_are_taken
    zeros = "[#{(["0"] * 8_000).join(", ")}]"
    row = %(<tr><td class="cell">0</td><td class="cell">0</td></tr>\n)
    with_deflate do
      client = offering
      [zeros, "<table>#{row * 300}</table>", "-" * 5_000, "\0" * 262_144].each do |text|
        send_compressed(client, text)
        frame = client.read

        assert_equal [2, text], [frame.opcode, frame.rsv == 4 ? inflated(frame).b : frame.payload.b]
      end
    end
  end

  def test_sockets_on_streams_of_http2_compress_too
    with_deflate(http2_websockets: true, linger_timeout: 0.5) do
      connection = H2WebSocketConnection.new(connect)
      client = H2WebSocketClient.new(connection.connect(sec_websocket_extensions: "permessage-deflate"))
      client.text(LONG)
      frame = client.read

      assert_equal [4, LONG], [frame.rsv, inflated(frame)]
    ensure
      connection&.close
    end
  end

  def test_without_zlib_the_option_is_refused_with_what_to_do
    program = <<~RUBY
      require "heddle/http"
      Heddle::HTTP::WebSocket.send(:remove_const, :DEFLATE)
      Heddle::HTTP::WebSocket::DEFLATE = false
      Heddle::HTTP::Limits.new
      begin
        Heddle::HTTP::Limits.new(websocket_deflate: true)
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
    output, = Open3.capture2e(RbConfig.ruby, "-r#{ROOT}/bin/support/gem_paths", "-I#{ROOT}/lib", "-e", program)

    assert_match(/\Awebsocket_deflate needs zlib, which was missing when Heddle was built: .* gem pristine heddle/,
                 output)
  end

  # Debian's package node-ws.
  NODE = <<~JAVASCRIPT
    const WebSocket = require("/usr/share/nodejs/ws")
    const socket = new WebSocket(process.argv[1], { perMessageDeflate: { threshold: 0 } })
    const messages = ["grüße ".repeat(100), Buffer.from([255, 0]), "x".repeat(3000), "",
                      [...Array(30000).keys()].join("")]
    let next = 0
    const say = () => next < messages.length ? socket.send(messages[next]) : socket.close(4001, "bye")
    socket.on("open", () => { console.log(socket.extensions.split(";")[0]); say() })
    socket.on("message", (data, binary) => {
      const wanted = messages[next++]
      if (binary !== Buffer.isBuffer(wanted) || !Buffer.from(wanted).equals(data)) throw new Error(`message ${next}`)
      say()
    })
    socket.on("close", (code) => console.log(code))
    socket.on("error", (error) => { console.log(error.message); process.exit(1) })
  JAVASCRIPT

  def node(url) = IO.popen([need_program("node"), "-e", NODE, url, { err: %i[child out] }], &:read)

  def need_ws
    skip "node-ws is missing: bin/setup --system" unless File.exist?("/usr/share/nodejs/ws/index.js")
  end

  def test_ws_of_node_compresses_both_ways
    need_ws
    with_deflate { assert_equal "permessage-deflate\n4001\n", node("ws://127.0.0.1:#{port}/") }
  end

  def test_ws_of_node_is_served_without_compression
    need_ws
    serving(upgrading(Echo.new), lint: false) { assert_equal "\n4001\n", node("ws://127.0.0.1:#{port}/") }
  end

  PYTHON = <<~PYTHON
    import asyncio, sys, websockets
    async def main(url):
        async with websockets.connect(url, compression="deflate", max_size=None) as socket:
            assert socket.extensions, "no extension was negotiated"
            for message in ["grüße " * 100, b"\\xff\\x00", "x" * 3000, "", "".join(map(str, range(30000)))]:
                for _ in range(2):
                    await socket.send(message)
                    assert await socket.recv() == message, message[:10]
            async def fragments():
                yield "one " * 50
                yield "two"
            await socket.send(fragments())
            assert await socket.recv() == "one " * 50 + "two"
            await socket.close(4001, "bye")
        print(socket.close_code)
    asyncio.run(main(sys.argv[1]))
  PYTHON

  def test_pythons_websockets_compresses_both_ways
    found = system("/usr/bin/python3", "-c", "import websockets", %i[out err] => File::NULL)
    skip "python3-websockets is missing" unless found
    with_deflate do
      output = IO.popen(["/usr/bin/python3", "-c", PYTHON, "ws://127.0.0.1:#{port}/", { err: %i[child out] }], &:read)

      assert_equal "4001\n", output
    end
  end
end
