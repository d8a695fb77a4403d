# frozen_string_literal: true

# test: long

require "test_helper"
require_relative "server_helpers"
require "support/h2_web_socket_client"
require "support/web_socket_client"
require "support/scheduled"
require "tmpdir"

# Clients that take large responses and messages slowly: all of these together have a budget.
class SlowReadersTest < Minitest::Test
  include ServerHelpers
  include Scheduled

  # Much more than the 4 MB that the kernel takes of each.
  SIZE = 24_000_000
  # A quarter of it is for responses: for one, and not for two.
  MEMORY = SIZE * 6
  COUNT = 3
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  APP = lambda do |env|
    parts = Enumerator.new { |body| 100.times { body << ("x" * 65_536) } } if env["REQUEST_METHOD"] == "POST"
    parts ||= [env["PATH_INFO"] == "/" ? Random.bytes(SIZE) : "small"]
    [200, { "content-type" => "text/plain" }, parts]
  end
  # The server waits in #close until the client has taken all of it.
  CLOSED = ->(env) { APP.call(env).tap { |answer| answer[2] = Body.new(answer[2]) } }
  Body = Struct.new(:parts) do
    def each(&) = parts.each(&)
    def close = nil
  end

  def test_slowest_client_of_complete_responses_is_cut_off
    serving(APP, memory_limit: MEMORY, access_log: false, lint: false) do
      sockets = Array.new(COUNT) { connect.tap { |socket| socket.write(GET) } }

      assert_cut_off
    ensure
      sockets&.each(&:close)
    end
  end

  def test_slowest_client_of_a_response_with_close_is_cut_off
    serving(CLOSED, memory_limit: MEMORY, access_log: false, lint: false) do
      sockets = Array.new(COUNT) { connect.tap { |socket| socket.write(GET) } }

      assert_cut_off
    ensure
      sockets&.each(&:close)
    end
  end

  # The windows stay closed, so that the server has nothing to send.
  def test_slowest_http2_client_is_cut_off
    serving(APP, memory_limit: MEMORY, access_log: false, lint: false) do
      clients = Array.new(COUNT) do
        H2Client.new(connect).tap do |client|
          client.send_preface
          client.send_frame("SETTINGS - 0 4:0")
          client.send_frame("HEADERS es+eh 1 get")
        end
      end

      assert_cut_off
    ensure
      clients&.each(&:close)
    end
  end

  # Each connection has a megabyte at most, and its fibers wait.
  def test_slowest_http2_client_of_streamed_responses_is_cut_off
    serving(APP, memory_limit: 24_000_000, access_log: false, lint: false) do
      clients = Array.new(8) do
        H2Client.new(connect).tap do |client|
          client.send_preface
          client.send_frame("SETTINGS - 0 4:0")
          [1, 3, 5, 7].each { |stream| client.send_frame("HEADERS es+eh #{stream} post") }
        end
      end

      assert_cut_off(connections: 8)
    ensure
      clients&.each(&:close)
    end
  end

  # A message that its socket alone may have pending.
  PUSHING = lambda do |env|
    next APP.call(env) unless env["rack.upgrade?"]

    env["rack.upgrade"] = Class.new { def on_open(client) = client.write("x" * SIZE) }.new
    [env["rack.upgrade?"] == :sse ? 200 : 101, {}, []]
  end
  LISTEN = "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"

  def test_slowest_client_of_web_sockets_is_cut_off
    assert_push_cut_off { WebSocketClient.new(connect).io }
  end

  def test_slowest_client_of_event_streams_is_cut_off
    assert_push_cut_off { connect.tap { |socket| socket.write(LISTEN) } }
  end

  # The windows stay closed.
  def test_slowest_client_of_web_sockets_over_http2_is_cut_off
    assert_push_cut_off { H2WebSocketConnection.new(connect, window: 0).tap { |client| client.connect("/") } }
  end

  def test_client_that_reads_gets_all_of_its_response_while_others_are_cut_off
    serving(APP, memory_limit: MEMORY, access_log: false, lint: false) do
      slow = Array.new(COUNT) { connect.tap { |socket| socket.write(GET) } }

      assert_equal SIZE, get("/").body.bytesize
      assert_cut_off
      assert_equal SIZE, get("/").body.bytesize
    ensure
      slow&.each(&:close)
    end
  end

  # Those of the other address take a little, and still they are the ones that are cut off.
  def test_client_that_reads_nothing_gets_all_of_its_response_while_another_address_has_most_bytes
    serving(APP, memory_limit: MEMORY, access_log: false, lint: false, trusted_proxies: []) do
      alone = connect.tap { |socket| socket.write("GET / HTTP/1.0\r\n\r\n") }
      many = Array.new(COUNT) { TCPSocket.new("127.0.0.1", port, "127.0.0.66").tap { |socket| socket.write(GET) } }

      assert_raises(Errno::ECONNRESET) { many.cycle { |socket| socket.readpartial(4_096) && sleep(0.01) } }
      assert_equal SIZE, alone.read.partition("\r\n\r\n").last.bytesize
    ensure
      [alone, *many].each { |socket| socket&.close }
    end
  end

  # Also at the first look of the server, and while the kernel sends what it took of the response at once.
  def test_client_that_reads_slowly_but_steadily_is_not_cut_off
    cut = 0
    app = ->(_) { [200, { "content-type" => "text/plain" }, ["x" * SIZE]] }
    listening(app) do |sockets, listener|
      client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
      client.setsockopt(:SOCKET, :RCVBUF, 32_768)
      client.write(GET)
      80.times do
        assert client.readpartial(4_096)
        sleep 0.02
        cut += sockets.cut_slow_readers(2**60, 1_000, 1)
      end

      assert_equal 0, cut
    ensure
      client&.close
    end
  end

  # All have taken what the kernel had for them, and most wait for their turn: whatever the rate, they are not too slow.
  def test_clients_that_wait_for_their_turn_are_not_cut_off
    app = ->(_) { [200, { "content-type" => "text/plain" }, ["x" * SIZE]] }
    listening(app) do |sockets, listener|
      clients = Array.new(40) { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
      clients.each { |client| client.write(GET) }
      sleep 0.05 until clients.all? { |client| client.wait_readable(0) } && sockets.running == 0

      assert_equal 0, sockets.cut_slow_readers(2**60, 0, 60)
      clients.each { |client| nil until client.recv_nonblock(1_000_000, exception: false) == :wait_readable }
      sleep 0

      assert_operator sockets.cut_slow_readers(2**60, 10**15, 0), :<, 20
    ensure
      clients&.each(&:close)
    end
  end

  # One check disconnects 64 clients at most. The others have been slow for as long.
  def test_more_slow_clients_than_one_check_disconnects_are_cut_off_by_the_next_check
    app = ->(_) { [200, { "content-type" => "text/plain" }, ["x" * 2_000_000]] }
    Dir.mktmpdir do |folder|
      path = File.join(folder, "server")
      listening(app, UNIXServer.new(path)) do |sockets|
        clients = Array.new(70) { UNIXSocket.new(path).tap { |client| client.write(GET) } }
        sleep 0 until clients.all? { |client| client.wait_readable(0) } && sockets.running == 0
        cuts = [0]
        cuts << sockets.cut_slow_readers(2**60, 10**9, 0.2) while cuts.last == 0
        cuts << sockets.cut_slow_readers(2**60, 10**9, 0.2)

        assert_equal [64, 6], cuts.last(2)
      ensure
        clients&.each(&:close)
      end
    end
  end

  private

  def listening(app, listener = TCPServer.new("127.0.0.1", 0))
    scheduled do |scheduler|
      handler = Heddle::Rack::Handler.new(app, Heddle::Rack::EnvBuilder.new($stderr, nil), nil)
      sockets = Heddle::Net::Sockets.new(scheduler, service: Heddle::HTTP::Engine.new(Heddle::HTTP::Limits.new),
                                         &handler.method(:call))
      sockets.listen(listener)
      yield sockets, listener
    ensure
      [sockets, listener].each { |one| one&.close }
    end
  end

  def assert_push_cut_off(&)
    serving(PUSHING, memory_limit: MEMORY, websocket_output_limit: 2 * SIZE, http2_websockets: true,
                     access_log: false, lint: false) do
      clients = Array.new(COUNT, &)

      assert_cut_off
    ensure
      clients&.each(&:close)
    end
  end

  def assert_cut_off(connections: COUNT)
    until_statistics { output.string.match?(/busy: \d clients? (was|were) disconnected/) }

    assert_operator server.statistics[:connections], :<, connections
    refute_match(/Error/, output.string)
    assert_equal "small", get("/small").body
  end
end
