# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "server/tls_helpers"

# Heddle::WebSocket.connect: WebSockets that this process opens.
class WebSocketConnectTest < Minitest::Test
  include WebSocketHelpers
  include TLSHelpers

  WebSocket = Heddle::WebSocket

  def url(path = "/", scheme: "ws") = "#{scheme}://127.0.0.1:#{port}#{path}"

  # A socket of a server that answers the handshake with this, then calls the block.
  def answering(response, **)
    listener = TCPServer.new("127.0.0.1", 0)
    (@threads ||= []) << Thread.new do
      Thread.current.report_on_exception = false
      socket = listener.accept
      head = socket.gets("\r\n\r\n")
      key = head[/sec-websocket-key: (\S+)/i, 1]
      accept = Digest::SHA1.base64digest("#{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
      socket.write(format(response, accept:))
      yield socket if block_given?
      socket.read
    end
    WebSocket.connect("ws://127.0.0.1:#{listener.addr[1]}/", protocols: %w[chat], **)
  ensure
    listener.close
  end

  def teardown
    @threads&.each(&:kill)
    super
  end

  UPGRADE = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n" \
            "sec-websocket-accept: %<accept>s\r\n\r\n"

  def test_messages_come_back_and_the_block_closes_the_socket
    handler = Echo.new
    serving(upgrading(handler), lint: false) do
      found = WebSocket.connect(url) do |socket|
        sent = ["grüße", "\xff\x00".b, "x" * 200_000, ""].each { |message| assert socket.write(message) }

        sent.map { socket.read(timeout: PATIENCE) }
      end

      assert_equal ["grüße", "\xff\x00".b, "x" * 200_000, ""], found
      assert_equal [Encoding::UTF_8, Encoding::BINARY], found.first(2).map(&:encoding)
      calls = Array.new(6) { handler.calls.pop(timeout: PATIENCE) }

      assert_equal [:close, 1000, nil, false], calls.last
    end
  end

  def test_in_a_loop_one_fiber_reads_while_another_writes
    serving(upgrading(Echo.new), lint: false) do
      found = Heddle.run do
        socket = WebSocket.connect(url)
        reader = Heddle.async { Array.new(10) { socket.read } }
        10.times { |number| socket.write(number.to_s) }
        messages = reader.value
        last = Heddle.async { socket.read }
        Heddle.async { socket.close }
        messages << last.value << socket.close_code
      end

      assert_equal [*"0".."9", nil, 1000], found
    end
  end

  def test_the_servers_code_and_reason_are_kept
    closing = Class.new { def on_message(client, _) = client.close(4242, "enough") }.new
    serving(upgrading(closing), lint: false) do
      socket = WebSocket.connect(url)
      socket.write("?")

      assert_nil socket.read(timeout: PATIENCE)
      assert_equal [4242, "enough", false], [socket.close_code, socket.close_reason, socket.open?]
      refute socket.write("too late")
    end
  end

  def test_fields_and_subprotocols_are_the_callers
    env = nil
    app = lambda do |one|
      env = one
      Heddle::WebSocket.upgrade(one, Echo.new, "sec-websocket-protocol" => "v2")
    end
    serving(app, lint: false) do
      WebSocket.connect(url("/a?b=c"), protocols: %w[v1 v2], headers: { "Authorization" => "Bearer x" }) do |socket|
        assert_equal "v2", socket.protocol
      end
    end

    assert_equal ["/a", "b=c", "Bearer x", "v1, v2"],
                 env.values_at("PATH_INFO", "QUERY_STRING", "HTTP_AUTHORIZATION", "HTTP_SEC_WEBSOCKET_PROTOCOL")
  end

  def test_over_tls_certificates_count
    serving_tls(upgrading(Echo.new), lint: false) do
      WebSocket.connect(url(scheme: "wss"), tls: { ca: @certificate }) do |socket|
        socket.write("secret")

        assert_equal "secret", socket.read(timeout: PATIENCE)
      end
      assert_raises(Heddle::HTTP::Client::TLSError) { WebSocket.connect(url(scheme: "wss")) }
    end
  end

  def test_another_answer_is_an_error_with_its_status
    serving(->(_) { [404, {}, []] }, lint: false) do
      assert_equal 404, assert_raises(WebSocket::HandshakeError) { WebSocket.connect(url) }.status
    end
  end

  def test_answers_that_are_none_of_a_websocket_are_refused
    { "accept" => UPGRADE.sub("%<accept>s", "bm9uZQ=="),
      "another protocol" => UPGRADE.sub("upgrade: websocket", "upgrade: h2c"),
      "does not name" => UPGRADE.sub(/^connection: .*\r\n/i, "connection: keep-alive\r\n"),
      "not offered" => UPGRADE.sub("\r\n\r\n", "\r\nsec-websocket-protocol: other\r\n\r\n"),
      "extension" => UPGRADE.sub("\r\n\r\n", "\r\nsec-websocket-extensions: permessage-deflate\r\n\r\n") }
      .each do |text, response|
      error = assert_raises(WebSocket::HandshakeError, text) { answering(response) }

      assert_match(/#{text}/i, error.message)
    end
  end

  def test_a_server_that_breaks_the_protocol_or_a_limit_ends_the_socket
    { [0x83, 0] => 1002, [0x81, 0x80, 0, 0, 0, 0] => 1002, [0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0] => 1009,
      [0x81, 1, 0xff] => 1007 }.each do |bytes, code|
      socket = answering(UPGRADE) { |server| server.write(bytes.pack("C*")) }

      assert_nil socket.read(timeout: PATIENCE)
      assert_equal code, socket.close_code
    end
  end

  def test_a_part_of_the_only_subprotocol_is_not_it
    response = UPGRADE.sub("\r\n", "\r\nSec-WebSocket-Protocol: chat\r\n")
    error = assert_raises(WebSocket::HandshakeError) { answering(response, protocols: "chat.v2") }

    assert_includes error.message, "the protocol chat, which was not offered"
  end

  def test_a_server_that_sends_without_a_pause_does_not_outlast_the_limit_of_a_read
    socket = answering("#{UPGRADE}#{"\x8a\x00" * 50_000}\x81\x04late")
    let_time_pass(socket)

    assert_raises(IO::TimeoutError) { socket.read(timeout: PATIENCE) }
  end

  def test_a_server_that_sends_without_a_pause_does_not_outlast_the_limit_of_a_close
    socket = answering("#{UPGRADE}#{"\x8a\x00" * 50_000}\x88\x02\x0f\xa0")
    let_time_pass(socket)
    socket.close(timeout: PATIENCE)

    assert_equal 1006, socket.close_code
  end

  def test_a_server_that_sends_without_a_pause_leaves_turns_to_other_fibers
    sent = Thread::Queue.new
    socket = answering(UPGRADE) { |server| sent << server.write("\x8a\x00" * 50_000, "\x81\x04late") }
    sent.pop
    turns = 0
    message = Heddle.run do
      Heddle.async(background: true) { loop { sleep(0) && turns += 1 } }
      socket.read
    end

    assert_equal "late", message
    assert_operator turns, :>=, 5
  end

  # From its second look on, the clock of this socket is beyond all limits.
  def let_time_pass(socket)
    looks = 0
    socket.define_singleton_method(:now) { super() + ((looks += 1) > 1 ? 2 * PATIENCE : 0) }
  end

  def test_socket_is_closed_when_the_handshake_is_interrupted
    listener = TCPServer.new("127.0.0.1", 0)
    GC.disable # it would close the socket, too
    head, rest = Heddle.run do
      connecting = Heddle.async { WebSocket.connect("ws://127.0.0.1:#{listener.addr[1]}/") }
      Heddle.timeout(PATIENCE) do
        peer = listener.accept
        [peer.gets("\r\n\r\n").tap { connecting.cancel }, peer.read]
      end
    end

    assert_match(/\AGET/, head)
    assert_empty rest
  ensure
    GC.enable
    listener.close
  end

  def test_socket_is_closed_when_its_close_is_interrupted
    socket = answering(UPGRADE) { sleep }
    Heddle.run { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.05) { socket.close } } }

    assert_equal 1006, socket.close_code
  end

  def test_nothing_follows_a_part_of_a_frame
    interruptions = { IO::TimeoutError => ->(&write) { write.call },
                      Heddle::TimeoutError => ->(&write) { Heddle.run { Heddle.timeout(0.05, &write) } } }
    interruptions.each_with_index do |(error, interrupt), index|
      socket = answering(UPGRADE, write_timeout: index.zero? ? 0.05 : PATIENCE) { sleep }
      assert_raises(error) { interrupt.call { socket.write("x" * 20_000_000) } }

      assert_equal [false, 1006, false], [socket.open?, socket.close_code, socket.write("next")]
    end
  end

  def test_a_server_that_disappears_ends_the_socket
    socket = answering(UPGRADE, &:close)

    assert_nil socket.read(timeout: PATIENCE)
    assert_equal 1006, socket.close_code
  end

  # It has a second for each answer, on a busy machine, too.
  def test_a_server_that_answers_pings_is_not_given_up
    serving(upgrading(Echo.new), lint: false) do
      socket = WebSocket.connect(url, ping: 1)

      assert_raises(IO::TimeoutError) { socket.read(timeout: 2.2) }
      assert_predicate socket, :open?
      socket.close
    end
  end

  # Such as a loop that has something else to do now and then.
  def test_a_server_that_is_silent_over_several_reads_is_given_up
    pings = Thread::Queue.new
    socket = answering(UPGRADE, ping: 0.1) { |server| pings << server.read(6).getbyte(0) }
    reads = (1..500).find do
      socket.read(timeout: 0.02)
      socket.close_code
    rescue IO::TimeoutError
      nil
    end

    assert_equal [1006, 0x89], [socket.close_code, reads && pings.pop(timeout: PATIENCE)]
  end

  def test_private_addresses_can_be_denied
    serving(upgrading(Echo.new), lint: false) do
      assert_raises(Heddle::HTTP::Client::PrivateAddressError) { WebSocket.connect(url, deny_private: true) }
    end
  end

  def test_mistakes_are_named
    error = assert_raises(ArgumentError) { WebSocket.connect("http://a/") }

    assert_match(%r{begins with ws:// or wss://}, error.message)
    serving(upgrading(Echo.new), lint: false) do
      error = assert_raises(ArgumentError) { WebSocket.connect(url, headers: { "Upgrade" => "x" }) }

      assert_match(/leave out Upgrade, because the handshake sets it/, error.message)
      WebSocket.connect(url) do |socket|
        assert_raises(ArgumentError) { socket.write("\xff") }
        assert_raises(ArgumentError) { socket.close(1005) }
      end
    end
  end

  PYTHON = <<~PYTHON
    import asyncio, sys, websockets
    async def main(url):
        async with websockets.connect(url, compression=None, max_size=None) as socket:
            for message in ["grüße", b"\\xff\\x00", "x" * 200000, ""]:
                await socket.send(message)
                assert await socket.recv() == message, message[:10]
            pong = await socket.ping(b"p" * 125)
            await asyncio.wait_for(pong, 20)
            async def fragments():
                yield "one "
                yield "two"
            await socket.send(fragments())
            assert await socket.recv() == "one two"
            await socket.close(4001, "bye")
        print(socket.close_code)
    asyncio.run(main(sys.argv[1]))
  PYTHON

  SERVER = <<~PYTHON
    import asyncio, websockets
    async def echo(socket, path=None):
        async for message in socket:
            await socket.send(message)
            if message == "close":
                await socket.close(4002, "as you say")
    async def main():
        async with websockets.serve(echo, "127.0.0.1", 0, compression=None) as server:
            print(server.sockets[0].getsockname()[1], flush=True)
            await asyncio.Future()
    asyncio.run(main())
  PYTHON

  # As Go's gorilla/websocket sends large messages.
  def test_a_message_may_have_as_many_fragments_as_its_limit_has_kibibytes
    count = 1_200
    fragment = lambda do |i|
      [(i == count - 1 ? 0x80 : 0) | (i == 0 ? 2 : 0), 126, 4_096].pack("CCn") + ("x" * 4_096)
    end
    Heddle.run do
      socket = answering(UPGRADE, protocols: [], message_limit: 8 << 20) do |peer|
        count.times { |i| peer.write(fragment.call(i)) }
      end

      assert_equal count * 4_096, socket.read(timeout: PATIENCE)&.bytesize
    ensure
      socket&.close(timeout: 0)
    end
  end

  def need_websockets
    found = system("/usr/bin/python3", "-c", "import websockets", %i[out err] => File::NULL)
    skip "python3-websockets is missing" unless found
  end

  def test_pythons_websockets_is_served
    need_websockets
    serving(upgrading(Echo.new), lint: false) do
      output = IO.popen(["/usr/bin/python3", "-c", PYTHON, url, { err: %i[child out] }], &:read)

      assert_equal "4001\n", output
    end
  end

  def test_pythons_websockets_serves
    need_websockets
    IO.popen(["/usr/bin/python3", "-c", SERVER]) do |python|
      WebSocket.connect("ws://127.0.0.1:#{python.gets.to_i}/") do |socket|
        ["grüße", "\xff\x00".b, "x" * 200_000, "close"].each do |message|
          socket.write(message)

          assert_equal message, socket.read(timeout: PATIENCE)
        end
        assert_nil socket.read(timeout: PATIENCE)
        assert_equal [4002, "as you say"], [socket.close_code, socket.close_reason]
      end
    ensure
      Process.kill("TERM", python.pid)
    end
  end
end
