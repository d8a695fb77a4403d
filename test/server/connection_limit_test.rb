# frozen_string_literal: true

require "test_helper"
require_relative "tls_helpers"
require_relative "web_socket_helpers"
require "support/event_stream_client"
require "support/h2_client"
require "support/h2_web_socket_client"

# How many connections a server takes: never so many that they alone use up its memory.
class ConnectionLimitTest < Minitest::Test
  include WebSocketHelpers
  include TLSHelpers

  GIB = 1_073_741_824
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def limit(descriptors: 1_048_576, memory: GIB, **options)
    configuration = Constants.configuration(**options)
    Heddle::Server::ConnectionLimit.of(configuration, descriptors:, memory:)
  end

  def test_the_default_is_what_fits_into_memory
    all = GIB - 16_777_216

    assert_equal all / 180_224, limit(workers: 0), "114,688 bytes and body_buffer, and http2_memory once"
    assert_equal ((GIB / 4) - 16_777_216) / 180_224, limit(workers: 4), "a worker's share"
    assert_equal all / 1_114_688, limit(workers: 0, body_buffer: 1_000_000)
    assert_equal GIB / 180_224, limit(workers: 0, http2: :off)
    assert_equal (GIB - 1_000_000) / 180_224, limit(workers: 0, http2_memory: 1_000_000)
  end

  def test_the_descriptors_of_a_process_are_those_that_its_connections_can_use
    descriptors = lambda do |**options|
      Heddle::Server::ConnectionLimit.descriptors(Constants.configuration(**options), memory: GIB)
    end

    [{ max_connections: 1_000 }, { workers: 0 }].each do |options|
      number = descriptors.call(**options)

      assert_equal limit(**options), limit(descriptors: number, **options)
    end
    assert_equal 1_419, descriptors.call(max_connections: 1_000)
    assert_nil Heddle::Server::ConnectionLimit.descriptors(Constants.configuration, memory: nil)
  end

  def test_the_default_leaves_descriptors_to_the_application_and_to_bodies_in_files
    assert_equal 704, limit(descriptors: 1_024)
    assert_equal 704, limit(descriptors: 1_024, memory: nil)
    assert_equal 98_912, limit(descriptors: 100_000, memory: nil), "bodies have a thousand files at most"
    assert_equal 16, limit(descriptors: 20), "and is never nothing"
  end

  def test_a_configured_limit_overrides_the_computed_one
    assert_equal 100_000, limit(max_connections: 100_000, memory: 1_000_000)
  end

  def test_idle_connection_is_closed_for_a_new_one_at_the_limit_and_the_log_says_so_once
    serving(text, max_connections: 2, lint: false) do
      kept = Array.new(2) { connect.tap { |socket| socket.write(GET) && read_answer(socket) } }
      other = connect
      other.write(GET)

      assert_match(%r{\AHTTP/1.1 200}, read_answer(other))
      assert_equal([1, 2], [kept.count { |socket| socket.wait_readable(0) }, server.statistics[:connections]])
      until_statistics { said > 0 }
      [*kept, other].each(&:close)
    end
    assert_equal 1, said
  end

  def test_new_connection_is_answered_while_others_send_one_request_after_another
    serving(text, max_connections: 2, lint: false) do
      busy = Array.new(2) { connect }
      busy.each { |socket| socket.write(GET) && read_answer(socket) }
      other = connect
      other.write(GET)
      last = ask_until_readable(busy, other)

      assert_match(%r{\AHTTP/1.1 200}, read_answer(other))
      assert_match(/^connection: close\r$/i, last)
      [*busy, other].each(&:close)
    end
  end

  # Asks over these connections without a pause until the other one has an answer, or for ten seconds.
  # @return [String] the last response
  def ask_until_readable(busy, other)
    kept, last, deadline = busy.dup, nil, now + 10
    until other.wait_readable(0) || now > deadline
      kept.reject! do |socket|
        socket.write(GET)
        last = read_answer(socket)
        last.match?(/^connection: close\r$/i)
      end
    end
    last
  end

  def test_idle_http2_connection_gets_goaway_before_it_is_closed_for_a_new_one
    serving(text, max_connections: 1, lint: false) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS es+eh 1 get")
      other = connect
      other.write(GET)

      assert_match(%r{\AHTTP/1.1 200}, read_answer(other))
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.type == "GOAWAY"

      assert_equal ["NO_ERROR", 1], [frame.error, frame.payload.unpack1("N")]
      assert_nil client.read_frame
      other.close
    ensure
      client&.close
    end
  end

  def test_clients_that_pause_in_a_request_are_closed_for_a_new_connection
    ["GET / HT", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234",
     "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n1234"].each do |incomplete|
      serving(text, max_connections: 1, lint: false) do
        pausing = connect
        pausing.write(incomplete)
        until_silent_for(0.8) { nil }

        assert_match(%r{\AHTTP/1.1 200}, answer_of_new_connection, incomplete)
        assert_nil read_answer(pausing)
        pausing.close
      end
    end
  end

  def test_client_that_pauses_in_a_body_that_was_left_unread_is_closed_for_a_new_connection
    serving(text, max_connections: 1, stream_bodies: %w[all], body_grace: 300, body_timeout: 300, lint: false) do
      pausing = connect
      pausing.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")

      assert_match(%r{\AHTTP/1.1 200}, read_answer(pausing))
      until_silent_for(0.8) { nil }

      assert_match(%r{\AHTTP/1.1 200}, answer_of_new_connection)
      assert_nil read_answer(pausing)
      pausing.close
    end
  end

  # The client with the first body has sent nothing for longer, but has just got its response.
  def test_time_of_the_application_is_no_pause_of_a_client_whose_body_was_left_unread
    asked = Thread::Queue.new
    release = Thread::Queue.new
    app = lambda do |env|
      release.pop if env["REQUEST_METHOD"] == "POST" && asked << env
      [200, {}, []]
    end
    serving(app, max_connections: 2, stream_bodies: %w[all], body_grace: 300, body_timeout: 300, lint: false) do
      answered = connect
      answered.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
      asked.pop(timeout: PATIENCE)
      pausing = connect
      pausing.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1234")
      until_silent_for(0.8) { nil }
      release.close

      assert_match(%r{\AHTTP/1.1 200}, read_answer(answered))
      assert_match(%r{\AHTTP/1.1 200}, answer_of_new_connection)
      assert_nil read_answer(pausing)
      answered.write("0\r\n\r\n#{GET}")

      assert_match(%r{\AHTTP/1.1 200}, read_answer(answered))
      [answered, pausing].each(&:close)
    end
  end

  # Of a record of 512 bytes.
  CLIENT_HELLO = ["160301020001000001fc0303"].pack("H*").freeze
  PROXY = "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"

  def test_unfinished_tls_handshakes_are_closed_for_a_new_connection
    ["", CLIENT_HELLO].each do |incomplete|
      serving_tls(text, max_connections: 1, lint: false) do
        assert_closed_for(incomplete) { connect_tls }
      end
    end
  end

  def test_unfinished_proxy_headers_are_closed_for_a_new_connection
    ["", "PROXY TCP4 192.0.2.1 "].each do |incomplete|
      serving(text, bind: ["127.0.0.1:0?proxy_protocol=on"], max_connections: 1, lint: false) do
        assert_closed_for(incomplete) { connect.tap { |socket| socket.write(PROXY) } }
      end
    end
  end

  def test_unfinished_tls_handshakes_behind_a_proxy_header_are_closed_for_a_new_connection
    serving_tls(text, "cert=#{@certificate}&key=#{@key}&proxy_protocol=on", max_connections: 1, lint: false) do
      assert_closed_for(PROXY + CLIENT_HELLO) do
        connect_tls(socket: connect.tap { |socket| socket.write(PROXY) })
      end
    end
  end

  # Before the handshake has used up its own 10 s.
  def assert_closed_for(incomplete)
    pausing = connect
    pausing.write(incomplete)
    until_silent_for(0.8) { nil }
    began = now
    other = yield
    other.write(GET)

    assert_match(%r{\AHTTP/1.1 200}, read_answer(other))
    assert_operator now - began, :<, 8
    assert_nil read_answer(pausing)
    [pausing, other].each(&:close)
  end

  def test_client_that_reads_nothing_is_closed_for_a_new_connection
    serving(text("x" * 20_000_000), max_connections: 1, lint: false) do
      reader = connect
      reader.write(GET)
      until_silent_for(0.8) { nil }

      assert_match(%r{\AHTTP/1.1 200}, answer_of_new_connection)
      reader.close
    end
  end

  def test_http2_upload_that_pauses_is_closed_for_a_new_connection
    serving(text, max_connections: 1, lint: false) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS eh 1 post")
      until_silent_for(0.8) { nil }

      assert_match(%r{\AHTTP/1.1 200}, answer_of_new_connection)
      client.close
    end
  end

  def test_upload_that_makes_progress_and_a_running_request_stay_at_the_limit
    app, arrived, release = waiting_application
    serving(app, max_connections: 2, lint: false) do
      running = connect
      running.write(GET)
      arrived.pop
      upload = connect
      upload.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90\r\n\r\n")
      other = connect
      other.write(GET)
      20.times { upload.write("x") && sleep(0.1) }

      assert_equal 2, server.statistics[:connections]
      2.times { release << true }
      upload.write("x" * 70)

      assert_equal %w[200 200], [running, upload].map { |socket| read_answer(socket)[/ (\d+)/, 1] }
      3.times { release << true }
      [running, upload, other].each(&:close)
    end
  end

  def test_web_socket_heard_from_least_recently_is_closed_for_a_new_connection
    handler = Echo.new
    serving(upgrading(handler), max_connections: 2, lint: false) do
      silent, other = Array.new(2) { dial }
      until_silent_for(0.8) { other.text("still here") && other.message }
      assert_match(%r{\AHTTP/1.1 404}, answer_of_new_connection)
      frame = silent.closing

      assert_equal [1013, "other clients need the connection", true], [frame.code, frame.reason, silent.ended?]
      other.text("still here")

      assert_equal "still here", other.message
    end
    assert_includes Array.new(handler.calls.size) { handler.calls.pop }, [:close, 1013, nil, false]
  end

  def test_web_socket_stays_while_another_connection_is_idle
    serving(upgrading(Echo.new), max_connections: 2, lint: false) do
      socket = dial
      idle = connect
      idle.write(GET)
      read_answer(idle)
      until_silent_for(0.8) { nil }

      assert_match(%r{\AHTTP/1.1 404}, answer_of_new_connection)
      assert_nil read_answer(idle)
      socket.text("still here")

      assert_equal "still here", socket.message
      idle.close
    end
  end

  def test_web_socket_over_http2_is_closed_for_a_new_connection
    serving(upgrading(Echo.new), max_connections: 1, http2_websockets: true, lint: false) do
      client = H2WebSocketClient.new(H2WebSocketConnection.new(connect).connect("/"))
      @clients = [client]
      until_silent_for(0.8) { nil }

      assert_match(%r{\AHTTP/1.1 404}, answer_of_new_connection)
    end
  end

  def test_event_stream_is_closed_for_a_new_connection_and_has_a_whole_end
    serving(event_streams, max_connections: 1, lint: false) do
      stream = EventStreamClient.new(connect, "/events", "Accept: text/event-stream\r\n")

      assert_equal "first", stream.event["data"]
      until_silent_for(0.8) { nil }

      assert_match(%r{\AHTTP/1.1 404}, answer_of_new_connection)
      assert_match(/\A\d+\z/, stream.event["retry"])
      assert_nil stream.event
      stream.close
    end
  end

  def event_streams
    lambda do |env|
      next [404, {}, []] unless env["rack.upgrade?"] == :sse

      env["rack.upgrade"] = Class.new { def on_open(client) = client.write("first") }.new
      [200, {}, []]
    end
  end

  # Long before the others have used up their own time: 10 s for a head or the beginning of a body, 30 s for a response.
  def answer_of_new_connection
    socket = connect
    socket.timeout = 8
    socket.write(GET)
    read_answer(socket)
  ensure
    socket&.close
  end

  # A connection stays for a second at least.
  def until_silent_for(seconds)
    deadline = now + seconds
    while now < deadline
      yield
      sleep 0.05
    end
  end

  # With 20 connections an address has 16.
  def test_hijacked_connections_of_an_address_are_as_many_as_it_may_have_connections
    held = Thread::Queue.new
    app = ->(env) { held << env["rack.hijack"].call.tap { |socket| socket.write("held") } and [200, {}, []] }
    serving(app, max_connections: 20, trusted_proxies: [], lint: false) do
      hijack = ->(from) { TCPSocket.new("127.0.0.1", port, from).tap { |socket| socket.write(GET) } }
      sockets = Array.new(16) { hijack.call("127.0.0.2").tap { |socket| assert_equal "held", socket.read(4) } }

      assert_nil hijack.call("127.0.0.2").read(4)
      assert_equal "held", hijack.call("127.0.0.3").read(4)
      until_statistics { output.string.include?("busy: 1 connection was closed, because") }
      held.pop.close

      assert_equal "held", hijack.call("127.0.0.2").read(4)
    ensure
      sockets&.each(&:close)
    end
  end

  def test_address_with_too_many_connections_is_refused_and_the_log_says_so
    serving(text, max_connections: 20, trusted_proxies: [], lint: false) do
      sockets = Array.new(17) { connect }

      assert_raises(EOFError, Errno::ECONNRESET) { sockets.last.readpartial(1) }
      until_statistics { output.string.include?("busy: 1 connection was closed, because") }
      sockets.each(&:close)
    end
  end

  def test_address_behind_a_proxy_header_with_too_many_connections_is_refused_and_others_are_not
    serving(text, bind: ["127.0.0.1:0?proxy_protocol=on"], max_connections: 20, lint: false) do
      sockets = Array.new(16) { connect.tap { |socket| socket.write(PROXY + GET) && read_answer(socket) } }
      refused, other = [PROXY, PROXY.sub("192.0.2.1", "192.0.2.3") + GET].map do |input|
        sockets << connect.tap { |socket| socket.write(input) }
        read_answer(sockets.last)
      end

      assert_nil refused
      assert_match(%r{\AHTTP/1.1 200}, other)
      sockets[0, 2].each(&:close)
      until_statistics { |found| found[:connections] == 15 }
      sockets << connect.tap { |socket| socket.write(PROXY + GET) }

      assert_match(%r{\AHTTP/1.1 200}, read_answer(sockets.last), "an ended connection doesn't count")
      sockets.each(&:close)
    end
  end

  def said = output.string.scan("busy: 2 connections are open, which is the limit (max_connections").size
end
