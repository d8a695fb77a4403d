# frozen_string_literal: true

# test: long
# test: sanitize
# test: smoke

require "test_helper"
require "server/web_socket_helpers"
require "json"

# WebSockets by callbacks, over HTTP/1.1.
class WebSocketTest < Minitest::Test
  include WebSocketHelpers

  def test_text_and_binary_messages_come_back_and_the_close_handshake_is_answered
    handler = Echo.new
    serving(upgrading(handler), lint: false) do
      client = dial
      client.text("grüße")
      client.binary("\xff\x00".b)

      assert_equal 101, client.status
      assert_match(/^sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r$/i, client.head)
      assert_equal "grüße", client.message
      assert_equal "\xff\x00".b, client.message
      client.close(4001, "bye")

      assert_equal 4001, client.closing.code
      assert_predicate client, :ended?
      calls = Array.new(4) { handler.calls.pop(timeout: PATIENCE) }

      assert_equal [[:open, true], [:message, "grüße", Encoding::UTF_8],
                    [:message, "\xff\x00".b, Encoding::BINARY], [:close, 4001, "bye", false]], calls
    end
  end

  # It waits for the end of the tick, and longer for a client that does not read.
  def test_a_frame_is_sent_as_it_was_when_written
    handler = Class.new(Echo) do
      def on_message(client, _)
        frame = Heddle::HTTP::WebSocket::Codec.frame(2, "x" * 20_000, nil)
        client.write_frame(frame)
        frame.replace("y" * 100)
      end
    end.new
    serving(upgrading(handler), lint: false) do
      client = dial
      client.text("?")

      assert_equal "x" * 20_000, client.message
    end
  end

  def test_sockets_that_wait_have_no_fiber_and_no_thread_of_their_own
    serving(upgrading(Echo.new), lint: false) do
      echoed(1)
      before = fibers_and_threads
      echoed(50)
      after = fibers_and_threads

      assert_operator after.sum - before.sum, :<, 10, "#{before} fibers and threads, then #{after}"
    end
  end

  # Opens so many, each of which gets a message back.
  def echoed(count)
    Array.new(count) do
      client = dial
      client.text("a")

      assert_equal "a", client.message
    end
  end

  def fibers_and_threads = [ObjectSpace.each_object(Fiber).count(&:alive?), Thread.list.size]

  def test_the_application_closes_with_a_code_and_a_reason
    closing = Class.new(Echo) { def on_message(client, _) = client.close(4242, "enough") }.new
    serving(upgrading(closing), lint: false) do
      client = dial
      client.text("?")
      frame = client.closing
      client.close(frame.code)

      assert_equal [4242, "enough"], [frame.code, frame.reason]
      assert_predicate client, :ended?
      assert_equal [:open, true], closing.calls.pop(timeout: PATIENCE)
      assert_equal [:close, 4242, nil, false], closing.calls.pop(timeout: PATIENCE)
    end
  end

  def test_a_callback_that_raises_closes_its_socket_and_no_other
    failing = Class.new(Echo) { def on_message(client, message) = message == "no" ? raise("oh") : super }.new
    serving(upgrading(failing), lint: false) do
      other = dial
      client = dial
      client.text("no")

      assert_equal 1011, client.closing.code
      other.text("yes")

      assert_equal "yes", other.message
      assert_includes errors.string, "oh"
    end
  end

  def test_the_handler_is_called_when_a_client_disappears
    handler = Echo.new
    serving(upgrading(handler), lint: false) do
      dial.io.close

      assert_equal [:open, true], handler.calls.pop(timeout: PATIENCE)
      assert_equal [:close, 1006, nil, false], handler.calls.pop(timeout: PATIENCE)
    end
  end

  def test_messages_of_a_socket_come_one_at_a_time_and_in_order
    running = 0
    most = 0
    handler = Class.new do
      define_method(:on_message) do |client, message|
        most = [most, running += 1].max
        sleep(0.001) if message.end_with?("0")
        running -= 1
        client.write(message)
      end
    end
    serving(upgrading(handler.new), lint: false) do
      client = dial
      client.raw(Array.new(500) { |i| client.frame(1, i.to_s) }.join)

      assert_equal (0...500).map(&:to_s), Array.new(500) { client.message }
      assert_equal 1, most
    end
  end

  def test_only_pages_of_the_same_or_an_allowed_origin_get_a_socket
    handler = Echo.new
    serving(upgrading(handler), lint: false) do
      assert_equal 101, dial(origin: "http://127.0.0.1").status
      assert_equal 403, dial(origin: "http://evil.example").status
      assert_equal 403, dial(origin: "https://127.0.0.1").status
    end
    serving(upgrading(handler), lint: false, allowed_origins: ["https://a.example"]) do
      assert_equal 101, dial(origin: "https://a.example").status
      assert_equal 403, dial(origin: "http://127.0.0.1").status
      assert_equal 101, dial.status
    end
  end

  def test_page_of_its_origin_gets_a_socket_behind_a_proxy_that_says_the_scheme_of_the_socket
    serving(upgrading(Echo.new), lint: false) do
      assert_equal 101, dial(origin: "https://127.0.0.1", x_forwarded_proto: "wss").status
      assert_equal 101, dial(origin: "http://127.0.0.1", x_forwarded_proto: "ws").status
      assert_equal 403, dial(origin: "http://127.0.0.1", x_forwarded_proto: "wss").status
    end
  end

  def test_a_request_that_is_not_a_handshake_is_refused
    serving(upgrading(Echo.new), lint: false) do
      old = dial(sec_websocket_version: "8")

      assert_equal 426, old.status
      assert_match(/^sec-websocket-version: 13\r$/i, old.head)
      assert_equal 400, dial(sec_websocket_key: "short").status
      assert_equal 404, dial(sec_websocket_key: nil).status
      assert_equal 404, dial(upgrade: "h2c").status
    end
  end

  def test_an_application_that_wants_no_socket_answers_as_ever
    app = ->(env) { [200, { "content-type" => "text/plain" }, [env["rack.upgrade?"].inspect]] }
    serving(app, lint: false) do
      client = dial

      assert_equal 200, client.status
      assert_equal ":websocket", client.content(10)
    end
  end

  def test_a_ping_is_answered
    serving(upgrading(Echo.new), lint: false, websocket_ping: 0) do
      client = dial
      client.write(9, "are you there")
      pong = client.read

      assert_equal [10, "are you there"], [pong.opcode, pong.payload]
    end
  end

  # It has two seconds for its pong, on a busy machine, too.
  def test_a_silent_client_is_pinged_and_then_cut_off
    handler = Echo.new
    serving(upgrading(handler), lint: false, websocket_ping: 0.1, websocket_timeout: 2) do
      client = dial
      ping = client.read

      assert_equal 9, ping.opcode
      client.write(10, ping.payload)

      assert_equal 9, client.read.opcode
      assert_predicate client, :ended?
      assert_equal [[:open, true], [:close, 1006, nil, false]], Array.new(2) { handler.calls.pop(timeout: PATIENCE) }
    end
  end

  def test_a_message_above_the_limit_and_one_with_too_many_fragments_close_the_socket
    serving(upgrading(Echo.new), lint: false, websocket_message_limit: 1000) do
      client = dial
      client.text("x" * 1000)

      assert_equal 1000, client.message.bytesize
      client.text("x" * 1001)

      assert_equal 1009, client.closing.code
      client = dial
      client.write(1, "a", final: false)
      1_000.times { client.write(0, "", final: false) }

      assert_equal 1009, client.closing.code
    end
  end

  def test_a_client_that_does_not_read_is_closed_when_too_much_waits_for_it
    handler = Class.new(Echo) do
      def on_message(client, _)
        nil while client.write("x" * 100_000)
        @calls << :full
      end
    end.new
    serving(upgrading(handler), lint: false, websocket_output_limit: 200_000) do
      client = dial
      client.text("go")

      assert_equal [:open, true], handler.calls.pop(timeout: PATIENCE)
      assert_equal :full, handler.calls.pop(timeout: PATIENCE)
      assert_equal [:close, 1008], handler.calls.pop(timeout: PATIENCE).first(2)
    end
  end

  def test_sockets_are_closed_in_order_when_the_server_stops
    handler = Class.new(Echo) { def on_shutdown(client) = client.write("the end") }.new
    start(upgrading(handler), lint: false)
    client = dial
    client.text("a")

    assert_equal "a", client.message
    server.stop

    assert_equal "the end", client.message
    client.close(1001)

    assert wait_for_end
    assert_equal [:close, 1001], Array.new(3) { handler.calls.pop(timeout: PATIENCE) }.last.first(2)
  end

  # In both a callback runs that does not end: on_shutdown is called late, or never.
  def test_sockets_whose_handler_is_busy_are_closed_in_order_too
    handler = Class.new(Echo) do
      def on_message(client, message)
        super
        @calls.pop until message == "quick"
      end

      def on_shutdown(_client) = sleep
    end.new
    start(upgrading(handler), lint: false, stop_timeout: 2)
    clients = %w[quick slow].map { |text| dial.tap { |client| client.text(text) && client.message } }
    server.stop

    assert_equal [1001, 1001], clients.map { |client| client.closing.code }
    refute wait_for_end, "their callbacks were cancelled"
  end

  # A hundred a second: not all clients come back at once. The last of 100 is due after 0.99 s.
  def test_sockets_are_closed_one_after_the_other_when_the_server_stops
    start(upgrading(Echo.new), lint: false, stop_timeout: 30)
    echoed(100)
    began = now
    server.stop
    ends = @clients.map { |client| client.closing.code.tap { answer_close(client) } }

    assert_equal [1001], ends.uniq
    assert_operator now - began, :>=, 0.9
    assert wait_for_end
  end

  # On a busy machine the server may have waited for it for long enough.
  def answer_close(client)
    client.close(1001)
  rescue Errno::ECONNRESET, Errno::EPIPE
    nil
  end

  def test_any_thread_may_write
    writer = Thread::Queue.new
    handler = Class.new(Echo) { define_method(:on_open) { |client| writer << client } }.new
    serving(upgrading(handler), lint: false) do
      client = dial
      socket = writer.pop(timeout: PATIENCE)

      assert Thread.new { socket.write("from a thread") }.value
      assert_equal "from a thread", client.message
      Thread.new { socket.close(4000) }.join

      assert_equal 4000, client.closing.code
    end
  end

  def test_a_handler_is_called_when_all_output_is_sent
    handler = Class.new(Echo) { def on_drained(client) = @calls << [:drained, client.pending] }.new
    serving(upgrading(handler), lint: false) do
      client = dial
      client.text("a")

      assert_equal "a", client.message
      found = handler.calls.pop(timeout: PATIENCE) until found == [:drained, 0]

      assert_equal [:drained, 0], found
    end
  end

  def test_messages_of_topics_go_to_their_subscribers
    handler = Class.new(Echo) do
      def on_open(client)
        client.subscribe("text")
        client.subscribe("bytes", as: :binary)
        client.subscribe("both", as: :json)
        super
      end

      def on_message(client, message)
        @calls << client.unsubscribe("text") << client.unsubscribe("text")
        client.publish("both", message)
      end
    end.new
    serving(upgrading(handler), lint: false) do
      clients = [dial, dial]
      2.times { handler.calls.pop(timeout: PATIENCE) }
      Heddle::PubSub.publish("text", "ü")
      Heddle::PubSub.publish("text", "\xff".b)
      Heddle::PubSub.publish("bytes", "ü")

      clients.each { |client| assert_equal ["ü", "\xff".b, "ü".b], Array.new(3) { client.message } }
      clients.first.text("\"quoted\"\n\\")
      clients.each do |client|
        assert_equal({ "topic" => "both", "data" => "\"quoted\"\n\\" }, JSON.parse(client.message).except("position"))
      end
      assert_equal [true, false], Array.new(2) { handler.calls.pop(timeout: PATIENCE) }
    end
  end

  # What a page shows of two topics is as it happened.
  def test_messages_of_several_topics_come_in_the_order_of_publishing
    handler = Class.new(Echo) do
      def on_open(client)
        %w[odd even].each { |topic| client.subscribe(topic) }
        super
      end
    end.new
    serving(upgrading(handler), lint: false) do
      clients = [dial, dial]
      2.times { handler.calls.pop(timeout: PATIENCE) }
      numbers = (1..100).map(&:to_s)
      numbers.each { |number| Heddle::PubSub.publish(number.to_i.odd? ? "odd" : "even", number) }

      clients.each { |client| assert_equal numbers, Array.new(100) { client.message } }
    end
  end

  # Subscribes with a policy for slow clients.
  class Slow
    attr_reader :opened

    def initialize(topic, slow)
      @topic = topic
      @slow = slow
      @opened = Thread::Queue.new
    end

    def on_open(client) = @opened << client.subscribe(@topic, slow: @slow)
  end

  # @yieldparam messages [Thread::Queue] what a client reads after it has read nothing while 100 messages came
  def with_a_slow_client(slow)
    handler = Slow.new("slow #{slow}", slow)
    serving(upgrading(handler), lint: false, websocket_output_limit: 200_000) do
      socket = Socket.new(:INET, :STREAM).tap { |one| one.setsockopt(:SOCKET, :RCVBUF, 4_096) }
      socket.connect(Addrinfo.tcp("127.0.0.1", port))
      client = WebSocketClient.new(socket)
      quick = dial
      2.times { handler.opened.pop(timeout: PATIENCE) }
      100.times { |number| Heddle::PubSub.publish("slow #{slow}", "#{number} #{"x" * 60_000}") && quick.message }
      messages = Thread::Queue.new
      reader = Thread.new do
        while (text = client.message) do messages << text[/\w+/] end
      rescue IOError
        nil # the test has ended
      end
      yield messages
    ensure
      socket&.close
      reader&.join
    end
  end

  def test_a_slow_client_gets_the_newest_message_where_its_topic_says_so
    with_a_slow_client(:coalesce) do |messages|
      numbers = []
      numbers << Integer(messages.pop(timeout: PATIENCE)) until numbers.last == 99

      assert_equal numbers.sort.uniq, numbers
      assert_operator numbers.size, :<, 100
    end
  end

  def test_a_slow_client_misses_messages_where_its_topic_says_so
    with_a_slow_client(:drop) do |messages|
      texts = []
      until texts.include?("end")
        Heddle::PubSub.publish("slow drop", "end")
        while (text = messages.pop(timeout: 0.05)) do texts << text end
      end
      numbers = texts.grep(/\d/).map(&:to_i)

      assert_equal numbers.sort.uniq, numbers
      assert_equal 0, numbers.first
      assert_operator numbers.size, :<, 100
    end
  end

  def test_a_client_that_comes_back_continues_at_its_position
    positions = Thread::Queue.new
    handler = Class.new do
      define_method(:on_message) { |client, since| positions << client.subscribe("news", since: since, as: :json) }
    end
    serving(upgrading(handler.new), lint: false) do
      first = Heddle::PubSub.publish("news", "one")
      second = Heddle::PubSub.publish("news", "two")
      client = dial
      client.text(first)

      assert_equal "two", JSON.parse(client.message)["data"]
      client.text("unknown:1")

      assert JSON.parse(client.message)["reset"]
      assert_equal second, positions.pop(timeout: PATIENCE)
    end
  end

  def test_a_handler_is_called_for_lost_messages
    handler = Class.new(Echo) do
      def on_open(client) = %w[a b].each { |topic| client.subscribe(topic, since: "unknown:1") }

      def on_reset(_client, topic) = @calls << topic
    end.new
    serving(upgrading(handler), lint: false) do
      dial

      assert_equal %w[a b], Array.new(2) { handler.calls.pop(timeout: PATIENCE) }.sort
    end
  end

  def test_a_socket_that_one_fiber_serves
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    app = lambda do |env|
      Heddle::WebSocket.serve(env) do |socket|
        socket.each { |message| message == "end" ? break : socket.write(message.upcase) }
      end
    end
    serving(app, lint: false) do
      client = dial
      client.text("a")

      assert_equal "A", client.message
      client.text("b")
      client.text("end")

      assert_equal "B", client.message
      assert_equal 1000, client.closing.code
      assert_equal 426, WebSocketClient.new(connect, upgrade: nil).status
    end
  end

  def test_a_fiber_that_serves_a_socket_is_woken_when_the_client_leaves
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    codes = Thread::Queue.new
    app = lambda do |env|
      Heddle::WebSocket.serve(env) do |socket|
        nil while socket.read
        codes << socket.close_code
      end
    end
    serving(app, lint: false) do
      dial.close(4003)

      assert_equal 4003, codes.pop(timeout: PATIENCE)
      dial.io.close

      assert_equal 1006, codes.pop(timeout: PATIENCE)
    end
  end

  def test_a_writer_waits_for_a_slow_client
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    written = Thread::Queue.new
    app = lambda do |env|
      Heddle::WebSocket.serve(env) do |socket|
        100.times { socket.write("x" * 100_000) }
        written << true
        socket.read
      end
    end
    serving(app, lint: false) do
      client = dial

      assert_nil written.pop(timeout: 0)
      assert_equal 10_000_000, Array.new(100) { client.message.bytesize }.sum
      assert written.pop(timeout: PATIENCE)
    end
  end

  # Of the server's, which is below the bytes that a writer may have waiting.
  def test_a_writer_waits_also_where_the_limit_of_pending_output_is_low
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    app = lambda do |env|
      Heddle::WebSocket.serve(env) do |socket|
        300.times { socket.write("x" * 30_000) }
        socket.read
      end
    end
    serving(app, lint: false, websocket_output_limit: 65_536) do
      client = dial

      assert_equal 9_000_000, Array.new(300) { client.message&.bytesize }.compact.sum
    end
  end

  def test_several_tasks_may_write_to_a_slow_client
    skip "a thread is no fiber" if mode_under_test[:mode] == :thread
    app = lambda do |env|
      Heddle::WebSocket.serve(env) do |socket|
        Array.new(3) { |i| Heddle.async { 2.times { socket.write(i.to_s * 10_000_000) } } }.each(&:value)
      end
    end
    serving(app, lint: false, websocket_output_limit: 300_000) do
      client = dial

      assert_equal({ "0" => 2, "1" => 2, "2" => 2 }, Array.new(6) { client.message&.[](-1) }.tally)
      assert_equal 1000, client.closing.code
    end
  end

  def test_sockets_outlive_compaction
    handler = Class.new(Echo) do
      def on_message(client, message)
        GC.start
        GC.compact if GC.respond_to?(:compact)
        super
      end
    end.new
    serving(upgrading(handler), lint: false) do
      clients = Array.new(5) { dial }
      clients.each_with_index do |client, i|
        client.text("message #{i}")

        assert_equal "message #{i}", client.message
        client.close
      end
      clients.each { |client| assert_equal 1000, client.closing.code }
    end
  end

  def test_socket_whose_handler_is_too_slow_for_its_topic_says_so
    release = Thread::Queue.new
    handler = Class.new(Echo) do
      def on_open(client)
        client.subscribe("to the handler", as: :handler)
        super
      end
      define_method(:on_publication) { |_client, _publication| release.pop }
    end.new
    serving(upgrading(handler), lint: false, websocket_output_limit: 10_000) do
      client = dial
      handler.calls.pop(timeout: PATIENCE)
      5.times { Heddle::PubSub.publish("to the handler", "x" * 9_000) }
      close = client.closing

      assert_equal [1008, "too many messages wait for the handler"], [close.code, close.reason]
    ensure
      release.close
    end
  end

  def test_handler_gets_all_missed_messages_of_a_topic_even_if_they_exceed_the_output_limit
    since = nil
    handler = Class.new(Echo) do
      define_method(:on_open) { |client| client.subscribe("missed", as: :handler, since:) }
      def on_publication(_client, publication) = @calls << publication.last[/\d+/]
    end.new
    serving(upgrading(handler), lint: false, websocket_output_limit: 10_000) do
      since = Heddle::PubSub.publish("missed", "before")
      6.times { |number| Heddle::PubSub.publish("missed", "#{number} #{"x" * 9_000}") }
      dial

      assert_equal %w[0 1 2 3 4 5], Array.new(6) { handler.calls.pop(timeout: 10) }
    end
  end

  def test_a_child_process_has_no_part_in_its_parents_sockets
    handler = Class.new(Echo) do
      def on_message(client, message)
        reader, writer = IO.pipe
        Process.wait(fork { writer.write([client.open?, client.write("child"), client.pending].inspect) && exit!(0) })
        writer.close
        client.write(reader.read)
        super
      end
    end.new
    serving(upgrading(handler), lint: false) do
      client = dial
      client.text("parent")

      assert_equal "[false, false, 0]", client.message
      assert_equal "parent", client.message
    end
  end

  def test_a_block_for_a_socket_needs_a_fiber
    app = ->(env) { Heddle::WebSocket.serve(env, &:read) }
    serving(app, lint: false, mode: :thread) do
      assert_equal 1011, dial.closing.code
      assert_includes errors.string, "Use callbacks"
    end
  end
end
