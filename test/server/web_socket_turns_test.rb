# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "server/web_socket_helpers"
require "tmpdir"

# WebSockets where several things happen in one tick, or none for long.
class WebSocketTurnsTest < Minitest::Test
  include WebSocketHelpers

  # @return [Integer] bytes that have come, of 30 MB that the server has for the client
  def read_slowly(client, seconds:)
    client.io.setsockopt(:SOCKET, :RCVBUF, 32_768)
    client.text("go")
    pace = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    read = 0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < pace
      read += client.io.readpartial(65_536).bytesize
      sleep 0.01 # it is slow
    end

    assert_operator read, :<, 25_000_000, "not slow enough to say anything"
    read
  end

  def test_a_client_that_reads_slowly_and_steadily_is_not_cut_off
    handler = Class.new(Echo) { def on_message(client, _) = client.write("x" * 30_000_000) }.new
    limits = { websocket_ping: 0.2, websocket_timeout: 1, websocket_output_limit: 40_000_000 }
    serving(upgrading(handler), lint: false, **limits) do
      client = dial
      read = read_slowly(client, seconds: 1.7)
      read += client.io.readpartial(65_536).bytesize while read < 30_000_010
      client.text("more")

      assert client.read
    end
  end

  # It can answer the close frame only when it has read what comes before.
  def test_a_client_that_reads_slowly_and_steadily_gets_all_that_was_written_before_the_close
    handler = Class.new(Echo) do
      def on_message(client, _)
        client.write("x" * 30_000_000)
        client.close(4_000, "all is said")
      end
    end.new
    serving(upgrading(handler), lint: false, websocket_timeout: 1, websocket_output_limit: 40_000_000) do
      client = dial
      read = read_slowly(client, seconds: 2.5)
      read += client.io.read(30_000_010 - read).bytesize

      assert_equal [30_000_010, 4_000], [read, client.closing.code]
      client.close(4_000)
    end
  end

  # Closes a socket that answers nothing, and waits until its time limit has passed.
  def await_time_limit
    silent = dial
    silent.text("close")
    silent.closing
    silent.io.read
  rescue Errno::ECONNRESET
    nil
  end

  # Writes much, or closes.
  def large_writer
    Class.new(Echo) do
      def on_message(client, message) = message == "close" ? client.close : client.write("x" * 30_000_000)
    end.new
  end

  def test_client_that_reads_after_its_close_frame_gets_all_that_was_written_before
    serving(upgrading(large_writer), lint: false, websocket_timeout: 1, websocket_output_limit: 40_000_000) do
      client = dial
      client.text("go")
      client.io.readpartial(1)
      client.close(4_000)
      client.io.read(5_000_000)
      await_time_limit

      assert_equal 25_000_009, client.io.read(25_000_009)&.bytesize
      assert_equal 4_000, client.closing.code
    end
  end

  def test_client_that_reads_an_ended_event_stream_slowly_gets_all_of_it
    writer = large_writer
    stream = Class.new do
      def on_open(client)
        client.write("x" * 30_000_000)
        client.close
      end
    end.new
    app = lambda do |env|
      env["rack.upgrade"] = env["rack.upgrade?"] == :sse ? stream : writer
      [200, {}, []]
    end
    serving(app, lint: false, websocket_timeout: 1, websocket_output_limit: 40_000_000) do
      client = connect
      client.write("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
      read = client.read(5_000_000)
      await_time_limit
      read << client.read

      assert_equal 30_000_000, read.partition("data: ").last.count("x")
      assert read.end_with?("x\n\n:\n\n")
    end
  end

  # They wait for the gate, and the message of a WebSocket doesn't.
  def test_a_message_is_served_while_requests_fill_the_queue
    release = false
    upgrade = upgrading(Echo.new)
    app = lambda do |env|
      next upgrade.call(env) if env["PATH_INFO"] == "/"

      Fiber.scheduler.yield until release
      [200, {}, []]
    end
    serving(app, lint: false, queue_limit: 1) do
      client = dial
      2.times { connect.write("GET /computing HTTP/1.1\r\nHost: a\r\n\r\n") }
      until_statistics { |found| found[:waiting] == 1 }
      client.text("hello")

      assert_equal "hello", client.message
      assert_equal 0, server.statistics[:rejected_full]
    ensure
      release = true
    end
  end

  # All input is here when the loop continues, which a Unix socket promises: the pings are more than two turns read.
  def test_a_socket_with_much_input_does_not_delay_the_messages_of_others
    calls = Thread::Queue.new
    release = false
    handler = Class.new(Echo) do
      define_method(:on_message) do |_client, text|
        calls << text
        Fiber.blocking { Thread.pass until release } if text == "block"
      end
    end.new
    Dir.mktmpdir do |folder|
      path = File.join(folder, "server")
      serving(upgrading(handler), lint: false, bind: ["127.0.0.1:0", "unix:#{path}"]) do
        blocking, before, flooding, after = @clients = Array.new(4) { WebSocketClient.new(UNIXSocket.new(path), "/") }
        blocking.text("block")

        assert_equal "block", calls.pop
        before.text("before")
        flooding.io.setsockopt(:SOCKET, :SNDBUF, 212_992) # the system doubles it
        flooding.io.write(flooding.frame(9, "x" * 120) * 2_200, flooding.frame(1, "last"))
        after.text("after")
        release = true

        assert_equal "last", Array.new(3) { calls.pop }.last
      ensure
        release = true
      end
    end
  end

  # The socket's fiber finds a message each time that it reads, so it would never wait.
  def test_a_fiber_with_many_messages_does_not_delay_a_request
    skip "a thread has no fiber" if mode_under_test[:mode] == :thread
    started = Thread::Queue.new
    release = false
    count = 0
    app = lambda do |env|
      next [200, {}, [count.to_s]] unless env["PATH_INFO"] == "/"

      Heddle::WebSocket.serve(env) do |socket|
        Fiber.blocking { started << true && Thread.pass until release }
        count += 1 while socket.read
      end
    end
    Dir.mktmpdir do |folder|
      path = File.join(folder, "server")
      serving(app, lint: false, bind: ["127.0.0.1:0", "unix:#{path}"]) do
        @clients = [WebSocketClient.new(UNIXSocket.new(path), "/")]
        started.pop
        @clients.first.io.write(@clients.first.frame(1, "x") * 5_000)
        other = UNIXSocket.new(path)
        other.write("GET /count HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        release = true

        assert_operator other.read[/\d+\z/].to_i, :<, 1_000
        until_statistics { count == 5_000 }
      ensure
        release = true
        other&.close
      end
    end
  end

  # A Unix socket is writable again when most of its bytes were read.
  def test_many_sockets_with_pings_do_not_delay_a_request
    blocks = Thread::Queue.new
    sockets = []
    read = release = nil
    handler = Class.new(Echo) do
      define_method(:on_message) { |*| Fiber.blocking { blocks << true && Thread.pass until release } }
    end.new
    upgrade = upgrading(handler)
    app = lambda do |env|
      next upgrade.call(env) if env["PATH_INFO"] == "/"

      read = IO.select(nil, sockets, nil, 0).to_a.fetch(1, [])
      [200, {}, []]
    end
    Dir.mktmpdir do |folder|
      path = File.join(folder, "server")
      serving(app, lint: false, bind: ["127.0.0.1:0", "unix:#{path}"]) do
        blocking, *@clients = Array.new(201) { WebSocketClient.new(UNIXSocket.new(path), "/") }
        other = UNIXSocket.new(path)
        blocking.text("block")
        blocks.pop
        sockets = @clients.map(&:io)
        @clients.each { |client| client.io.write(client.frame(9, "x" * 120) * 800) }
        assert_nil IO.select(nil, sockets, nil, 0), "all are full"
        other.write("GET /read HTTP/1.1\r\nHost: a\r\n\r\n")
        release = true

        assert_match(%r{\AHTTP/1.1 200 }, read_answer(other))
        assert_operator read.size, :<, 150
      ensure
        release = true
        [blocking, other].each { |one| one&.close }
      end
    end
  end

  def test_lost_messages_of_an_unsubscribed_topic_are_not_reported
    handler = Class.new(Echo) do
      def on_open(client)
        client.subscribe("a", since: "unknown:1")
        client.unsubscribe("a")
      end

      def on_reset(_client, topic) = @calls << topic
    end.new
    serving(upgrading(handler), lint: false) do
      client = dial
      client.text("still here")

      assert_equal "still here", client.message
      assert_equal [:message, "still here", Encoding::UTF_8], handler.calls.pop(timeout: PATIENCE)
    end
  end

  def test_a_message_that_another_fiber_takes_ends_nothing
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    handler = Class.new(Echo) do
      def on_open(client)
        Fiber.schedule do
          while (message = client.read)
            client.write(message)
          end
        end
      end
    end.new
    serving(upgrading(handler), lint: false) do
      client = dial
      20.times do |i|
        client.text(i.to_s)

        assert_equal i.to_s, client.message
      end
      client.close(4005)

      assert_equal 4005, client.closing.code
      handler.calls.pop(timeout: PATIENCE) => call
      call = handler.calls.pop(timeout: PATIENCE) while call.first == :message

      assert_equal [:close, 4005], call.first(2)
    end
  end

  def test_a_socket_that_is_closed_in_the_middle_of_much_input_reads_on
    size = 8_000_000
    sockets = Thread::Queue.new
    handler = Class.new(Echo) { define_method(:on_open) { |client| sockets << client } }.new
    serving(upgrading(handler), lint: false, websocket_message_limit: size, websocket_timeout: 200) do
      3.times do
        client = dial
        socket = sockets.pop(timeout: PATIENCE)
        client.raw([0x82, 0xff, size, 0].pack("CCQ>N")) # a mask of zeros
        client.raw("x" * (size / 2))
        socket.close(4242)
        client.raw("x" * (size / 2))

        assert_equal 4242, client.closing.code
        client.close(4001)

        assert_predicate client, :ended?
        assert_equal [:close, 4001], handler.calls.pop(timeout: PATIENCE).first(2)
      end
    end
  end

  def test_a_handler_that_waits_for_its_output_is_called_when_all_is_sent
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    handler = Class.new(Echo) do
      def on_message(client, message)
        super
        client.drain(0)
      end

      def on_drained(client) = @calls << [:drained, client.pending]
    end.new
    serving(upgrading(handler), lint: false) do
      client = dial

      assert_equal [[:drained, 0], [:open, true]], Array.new(2) { handler.calls.pop(timeout: PATIENCE) }.sort_by(&:to_s)
      client.text("a")

      assert_equal "a", client.message
      assert_equal [:message, "a", Encoding::UTF_8], handler.calls.pop(timeout: PATIENCE)
      assert_equal [:drained, 0], handler.calls.pop(timeout: 5)
    end
  end
end
