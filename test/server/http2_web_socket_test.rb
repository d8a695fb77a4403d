# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_web_socket_client"

# WebSockets on streams of HTTP/2 (RFC 8441).
class Http2WebSocketTest < Minitest::Test
  include WebSocketHelpers

  def serving(app, **) = super(app, lint: false, http2_websockets: true, **)

  def join(path = "/", on: H2WebSocketConnection.new(connect), **)
    H2WebSocketClient.new(on.connect(path, **)).tap { |client| (@clients ||= []) << client }
  end

  def test_messages_come_back_and_the_close_handshake_ends_the_stream_in_both_directions
    handler = Echo.new
    serving(upgrading(handler)) do
      client = join
      client.text("grüße")
      client.binary("\xff\x00".b)

      assert_equal [200, "grüße", "\xff\x00".b], [client.status, client.message, client.message]
      client.close(4001, "bye")

      assert_equal 4001, client.closing.code
      assert_predicate client, :ended?
      assert client.io.ended
      client.io.finish
      calls = Array.new(4) { handler.calls.pop(timeout: PATIENCE) }

      assert_equal [[:open, true], [:message, "grüße", Encoding::UTF_8],
                    [:message, "\xff\x00".b, Encoding::BINARY], [:close, 4001, "bye", false]], calls
      assert_nil client.io.reset_frame
    end
  end

  def test_extended_connect_is_offered_only_if_the_application_enables_it
    serving(upgrading(Echo.new)) { assert_equal 1, H2WebSocketConnection.new(connect).tap(&:close).settings[8] }
    WebSocketHelpers.instance_method(:serving).bind_call(self, text, lint: false) do
      assert_nil H2WebSocketConnection.new(connect).tap(&:close).settings[8]
    end
  end

  def test_the_env_is_that_of_an_extended_connect
    env = nil
    serving(->(one) { upgrading(Echo.new).call(env = one) }) do
      join("/room?a=b").close
    end

    assert_equal ["CONNECT", "/room", "a=b", ["websocket"], :websocket, "HTTP/2"],
                 env.values_at("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "rack.protocol", "rack.upgrade?",
                               "SERVER_PROTOCOL")
    assert_empty env.slice("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"), "a tunnel is no body"
  end

  # As async-websocket answers: the body reads and writes the stream's bytes itself.
  def test_a_streaming_body_with_rack_protocol_has_the_stream
    app = lambda do |env|
      body = lambda do |stream|
        while (piece = stream.readpartial(100))
          stream.write(piece.upcase)
          stream.flush
        end
      rescue EOFError
        stream.write("the end")
        stream.close
      end
      [200, { "rack.protocol" => env["rack.protocol"].first }, body]
    end
    serving(app) do
      stream = H2WebSocketConnection.new(connect).connect("/")
      stream.write("hello")

      assert_equal "HELLO", stream.readpartial(100)
      stream.finish
      rest = +""
      rest << stream.readpartial(100) until rest.size >= 7

      assert_equal "the end", rest
      stream.close
    end
  end

  def test_many_sockets_and_requests_share_a_connection
    serving(upgrading(Echo.new)) do
      connection = H2WebSocketConnection.new(connect)
      clients = Array.new(20) { |number| join("/#{number}", on: connection) }
      clients.each_with_index { |client, number| client.text("I am #{number}") }

      assert_equal(Array.new(20) { |number| "I am #{number}" }, clients.map(&:message))
      request = connection.connect("/", method: "GET", protocol: nil)
      connection.take_frame until request.ended

      assert_equal 1, request.frames.size
    end
  end

  def test_a_socket_is_served_by_a_fiber_and_waits_for_the_clients_window
    large = "x" * 100_000
    app = lambda do |env|
      Heddle::WebSocket.serve(env) do |socket|
        sent = Array.new(socket.read.to_i) { |number| socket.write("#{number}#{large}") }
        socket.close(sent.all? ? 4000 : 4999)
      end
    end
    serving(app) do
      client = join
      client.text("30")

      assert_equal((0...30).to_a, Array.new(30) { client.message.to_i })
      assert_equal 4000, client.closing.code
    end
  end

  def test_topics_go_to_streams_in_c_and_large_messages_too
    joining = Class.new do
      def on_open(client)
        client.subscribe("h2-room")
        client.write("joined")
      end

      def on_message(client, message) = client.publish("h2-room", message)
    end.new
    serving(upgrading(joining)) do
      one = join
      connection = H2WebSocketConnection.new(connect)
      others = Array.new(3) { join(on: connection) }
      assert_equal ["joined"], [one, *others].map(&:message).uniq
      one.text("hello")
      one.text("y" * 150_000)
      [one, *others].each { |client| assert_equal ["hello", "y" * 150_000], [client.message, client.message] }
    end
  end

  def test_a_client_that_resets_its_stream_leaves
    handler = Echo.new
    serving(upgrading(handler)) do
      connection = H2WebSocketConnection.new(connect)
      leaving, staying = Array.new(2) { join(on: connection) }
      2.times { handler.calls.pop(timeout: PATIENCE) }
      leaving.io.reset

      assert_equal [:close, 1006, nil, false], handler.calls.pop(timeout: PATIENCE)
      staying.text("still here")

      assert_equal "still here", staying.message
    end
  end

  def test_a_client_that_ends_its_side_without_a_close_frame_leaves
    handler = Echo.new
    serving(upgrading(handler)) do
      client = join
      client.text("last words")
      client.io.finish

      # It may be gone before the echo is sent.
      nil while client.message
      _, message, close = Array.new(3) { handler.calls.pop(timeout: PATIENCE) }

      assert_equal [:message, "last words"], message.first(2)
      assert_equal [:close, 1006, nil, false], close
    end
  end

  def test_a_client_that_leaves_its_stream_open_after_the_close_handshake_has_the_time_to_linger_for_its_end
    serving(upgrading(Echo.new), linger_timeout: 0.1, websocket_timeout: 3600) do
      client = join
      client.close(1000)

      assert_equal 1000, client.closing.code
      assert_predicate client, :ended?
      stream = client.io
      stream.instance_variable_get(:@connection).take_frame until stream.reset_frame

      assert_equal 0, stream.reset_frame.payload.unpack1("N") # NO_ERROR
    end
  end

  def test_a_connection_that_breaks_ends_its_sockets
    handler = Echo.new
    serving(upgrading(handler)) do
      connection = H2WebSocketConnection.new(connect)
      3.times { join(on: connection) }
      3.times { handler.calls.pop(timeout: PATIENCE) }
      connection.close

      assert_equal([[:close, 1006, nil, false]], Array.new(3) { handler.calls.pop(timeout: PATIENCE) }.uniq)
    end
  end

  def test_a_client_that_does_not_read_is_closed_and_others_on_its_connection_are_not
    handler = Class.new(Echo) do
      def on_message(client, message)
        return super unless message == "flood"

        nil while client.write("z" * 65_536)
        @calls << :full
      end
    end.new
    serving(upgrading(handler), websocket_output_limit: 200_000, linger_timeout: 0.1) do
      connection = H2WebSocketConnection.new(connect)
      connection.credit = false
      slow = join(on: connection)
      slow.text("flood")
      nil until handler.calls.pop(timeout: PATIENCE) == :full

      assert_equal :close, handler.calls.pop(timeout: PATIENCE).first
      fast = join
      fast.text("hello")

      assert_equal "hello", fast.message
      assert_equal 1, server.engines.sum { |engine| engine.websockets[:too_slow] }
    end
  end

  def test_a_slow_handler_stops_its_client_by_the_stream_window
    gate = Thread::Queue.new
    handler = Class.new(Echo) do
      define_method(:on_message) do |client, message|
        gate.pop
        super(client, message)
      end
    end.new
    serving(upgrading(handler)) do
      client = join
      other = join
      50.times { |number| client.text("#{number}#{"x" * 1_000}") } # as much as the window and the handler's list take
      other.text("other")
      60.times { gate << true }

      assert_equal((0...50).to_a, Array.new(50) { client.message.to_i })
      assert_equal "other", other.message
    end
  end

  # What waits for the handlers is more than the connection's window (1 MiB).
  def test_slow_handlers_do_not_delay_other_sockets_of_the_connection
    gate = Thread::Queue.new
    handler = Class.new(Echo) do
      define_method(:on_message) do |client, message|
        gate.pop if message.bytesize > 5
        super(client, message)
      end
    end.new
    serving(upgrading(handler)) do
      connection = H2WebSocketConnection.new(connect)
      slow = Array.new(40) { join(on: connection) }
      sizes = [60_000, 60_000, 60_000, 30_000] # handled, two that wait, and one in the window
      slow.each { |client| sizes.each { |size| client.text("x" * size) } }
      other = join(on: connection)
      other.text("other")

      assert_equal "other", other.message
      gate.close
      slow.each { |client| assert_equal sizes, Array.new(4) { client.message.bytesize } }
    end
  end

  def test_a_foreign_origin_is_rejected_and_so_is_another_version
    serving(upgrading(Echo.new)) do
      assert_equal 403, join(origin: "http://evil.example").status
      assert_equal 426, join(sec_websocket_version: "8").status
      assert_equal 200, join(origin: "http://127.0.0.1").status
    end
  end

  def test_frames_that_come_before_the_response_count
    gate = Thread::Queue.new
    serving(->(env) { gate.pop && upgrading(Echo.new).call(env) }) do
      connection = H2WebSocketConnection.new(connect)
      stream = connection.connect
      early = WebSocketClient.allocate
      early.instance_variable_set(:@io, stream)
      early.text("early")
      gate << true
      client = H2WebSocketClient.new(stream).tap { |one| @clients = [one] }

      assert_equal "early", client.message
    end
  end

  # In one write, so that the stream has ended before the application is called.
  def test_frames_that_come_with_the_end_of_the_stream_before_the_response_count
    handler = Echo.new
    serving(upgrading(handler)) do
      client = H2Client.new(wire = StringIO.new("".b))
      client.send_preface
      client.send_frame("HEADERS eh 1 :method=CONNECT :protocol=websocket :scheme=http :path=/ :authority=127.0.0.1 " \
                        "sec-websocket-version=13")
      client.send_frame("DATA - 1 818500000000 \"early\"")
      client.send_frame("DATA es 1 888200000000 03e8")
      socket = connect
      socket.write(wire.string)
      _, message, closing = Array.new(3) { handler.calls.pop(timeout: PATIENCE) }

      assert_equal [[:message, "early", Encoding::UTF_8], [:close, 1000]], [message, closing.first(2)]
    ensure
      socket&.close
    end
  end

  def test_a_server_that_stops_closes_its_sockets_in_order
    handler = Class.new(Echo) { def on_shutdown(client) = client.write("the server stops") }.new
    serving(upgrading(handler), stop_timeout: 5) do
      client = join
      handler.calls.pop(timeout: PATIENCE)
      @server.stop

      assert_equal "the server stops", client.message
      frame = client.closing

      assert_equal 1001, frame.code
      client.close(1001)
      client.io.finish
      wait_for_end
    end
  end

  def test_writes_from_other_threads_arrive
    opened = Thread::Queue.new
    handler = Class.new { define_method(:on_open) { |client| opened << client } }.new
    serving(upgrading(handler)) do
      client = join
      other = opened.pop(timeout: PATIENCE)
      Thread.new { 100.times { |number| other.write(number.to_s) } }.join

      assert_equal((0...100).map(&:to_s), Array.new(100) { client.message })
    end
  end

  # Waits when it is asked for its callbacks, as a handler may that loads its code then.
  class Undecided
    attr_reader :asked, :decision

    def initialize
      @asked = Thread::Queue.new
      @decision = Thread::Queue.new
    end

    def respond_to_missing?(name, *)
      @decision.pop if name == :on_open && @asked.push(name)
      false
    end
  end

  def test_client_that_leaves_while_the_handler_is_asked_for_its_callbacks_gets_no_socket
    handler = Undecided.new
    serving(upgrading(handler)) do
      connection = H2WebSocketConnection.new(connect)
      connection.connect
      handler.asked.pop(timeout: PATIENCE)
      connection.close
      until_statistics { |found| found[:connections] == 0 }
      handler.decision.close
      until_statistics { |found| found[:running] == 0 }

      assert_equal 0, server.engine.websockets[:opened]
    end
  end

  def test_callbacks_run_in_threads
    serving(upgrading(Echo.new), mode: :thread) do
      client = join
      client.text("hello")

      assert_equal "hello", client.message
    end
  end
end
