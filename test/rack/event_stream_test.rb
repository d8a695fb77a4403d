# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/event_stream"
require "server/server_helpers"
require "support/event_stream_client"
require "support/h2_web_socket_client"
require "open3"
require "rack/deflater"
require "rack/etag"

# Events of a topic: sent by the connection, and by a fiber where a middleware hides the body.
module EventStreamCases
  include ServerHelpers

  PubSub = Heddle::PubSub

  APP = lambda do |env|
    query = URI.decode_www_form(env["QUERY_STRING"]).to_h
    case env["PATH_INFO"]
    when "/events"
      Heddle::EventStream.response(query["topic"], since: env["HTTP_LAST_EVENT_ID"], event: query["event"],
                                                   retry_after: query["retry"]&.to_f,
                                                   slow: query.fetch("slow", "close").to_sym)
    when "/counts"
      [200, { "content-type" => "text/plain" }, [PubSub::Subscription.statistics(Fiber.scheduler)[:subscribers].to_s]]
    end
  end

  # What stands before the streams.
  def app = APP

  # A fiber whose body is hidden sees the end of its client at the next comment only.
  def serving(mode: :fiber, stop_timeout: hidden? ? 0 : 30, **) = super(app, lint: hidden?, stop_timeout:, mode:, **)

  def setup
    PubSub::History.open(16 << 20, 100, 300)
  end

  def topic = @topic ||= "#{name}-#{rand(2**64)}"

  def events(query = "", headers = "", **)
    EventStreamClient.new(connect, "/events?topic=#{topic}#{query}", headers, **)
  end

  def subscribers = get("/counts").body.to_i

  def until_subscribers(count)
    deadline = now + PATIENCE
    sleep 0.001 until subscribers == count || now > deadline
    assert_equal count, subscribers
  end

  def test_messages_are_events_with_their_position
    serving do
      client = events("&event=price&retry=1.5")
      assert_match(%r{^content-type: text/event-stream\r$}, client.head)
      assert_match(/^cache-control: no-store, no-transform\r$/, client.head)
      assert_match(/^x-accel-buffering: no\r$/, client.head)
      assert_equal({ "retry" => "1500" }, client.event)
      assert_equal({ "id" => PubSub.position(topic) }, client.event)
      position = PubSub.publish(topic, "one\ntwo\r\n\rthree")

      assert_equal({ "event" => "price", "id" => position, "data" => "one\ntwo\n\nthree" }, client.event)
      large = "x" * 100_000
      PubSub.publish(topic, large)
      assert_equal large, client.event["data"]
      client.close
    end
  end

  def test_a_client_that_comes_back_misses_nothing
    first, *rest = Array.new(4) { |i| PubSub.publish(topic, i.to_s) }
    serving do
      client = events("", "Last-Event-ID: #{first}\r\n")

      assert_equal rest, Array.new(3) { client.event["id"] }
      last = PubSub.publish(topic, "new")
      assert_equal last, client.event["id"]
      client.close
    end
  end

  def test_messages_since_a_position_are_complete_though_slow_streams_skip_to_the_newest
    first, *rest = Array.new(4) { |i| PubSub.publish(topic, i.to_s) }
    serving do
      client = events("&slow=coalesce", "Last-Event-ID: #{first}\r\n")

      assert_equal rest, Array.new(3) { client.event["id"] }
      client.close
    end
  end

  def test_a_position_that_is_unknown_brings_a_reset
    last = PubSub.publish(topic, "x")
    serving do
      client = events("&event=price", "Last-Event-ID: what\r\n")

      assert_equal({ "event" => "reset", "id" => last, "data" => "reset" }, client.event)
      client.close
    end
  end

  def test_http_1_0_gets_events_until_the_connection_ends
    serving do
      client = events(version: "1.0")
      client.event
      PubSub.publish(topic, "hello")

      assert_equal "hello", client.event["data"]
      client.close
    end
  end

  def test_head_has_no_events
    serving do
      answer = exchange("HEAD /events?topic=#{topic} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

      assert_match(%r{\AHTTP/1.1 200 .*text/event-stream}m, answer)
      assert answer.end_with?("\r\n\r\n")
    end
  end

  def test_a_stream_over_http2
    serving do
      Open3.popen2e("curl", "-sSiN", "--http2-prior-knowledge",
                    "http://127.0.0.1:#{port}/events?topic=#{topic}") do |_, output, process|
        assert_match(%r{\AHTTP/2 200.*^id: }m, output.gets("\n\n"))
        PubSub.publish(topic, "hello")
        assert_match(/data: hello/, output.gets("\n\n"))
        Process.kill("TERM", process.pid)
      end
    end
  end
end

class EventStreamTest < Minitest::Test
  include EventStreamCases

  # What it takes to hide the body from the server.
  def hidden? = false

  def test_an_idle_stream_has_no_fiber_and_is_not_a_running_request
    serving do
      clients = Array.new(5) { events.tap(&:event) }
      until_subscribers(5)
      running = until_statistics { |statistics| statistics[:running] <= 1 }

      assert_operator running[:connections], :>=, 5
      clients.each(&:close)
    end
  end

  def test_a_client_that_leaves_is_noticed_without_a_message
    serving do
      clients = [events, events].each(&:event)
      until_subscribers(2)
      clients[0].close
      clients[1].leave
      until_subscribers(0)
    end
  end

  # Streams of one connection, as a browser's tabs have them.
  def test_over_http2_streams_have_no_fiber_either
    serving do
      connection = H2WebSocketConnection.new(connect)
      streams = Array.new(5) { connection.connect("/events?topic=#{topic}", method: "GET", protocol: nil) }
      until_subscribers(5)
      until_statistics { |statistics| statistics[:running] <= 1 }
      PubSub.publish(topic, "hello")
      PubSub.publish(topic, "x" * 100_000)

      streams.each do |stream|
        text = +""
        text << stream.readpartial(65_536) until text.end_with?("x\n\n")

        assert_match(/\Aid: .*\n\nid: .*\ndata: hello\n\nid: .*\ndata: x{100000}\n\n\z/, text)
      end
      streams.first.reset
      until_subscribers(4)
      connection.close
      until_subscribers(0)
    end
  end

  # The loop has the stream; the thread serves others.
  def test_over_http2_a_client_that_leaves_and_a_server_that_stops_end_the_stream
    command = ["curl", "-sSiN", "--http2-prior-knowledge"]
    last = nil
    serving do
      url = "http://127.0.0.1:#{port}/events?topic=#{topic}"
      Open3.popen2e(*command, url) do |_, output, process|
        output.gets("\n\n")
        Process.kill("TERM", process.pid)
      end
      until_subscribers(0)
      last = IO.popen([*command, url, { err: %i[child out] }])
      last.gets("\n\n")
    end

    assert_match(/\Aretry: \d+\n\n\z/, last.read)
    last.close
  end

  def test_over_http2_a_server_that_stops_does_not_wait_for_clients_that_keep_their_connection
    serving(stop_timeout: 10) do
      connection = H2WebSocketConnection.new(connect)
      stream = connection.connect("/events?topic=#{topic}", method: "GET", protocol: nil)
      stream.readpartial(65_536)
      server.stop

      assert wait_for_end
      connection.take_frame until stream.over?

      assert_equal [true, nil], [stream.ended, stream.reset_frame]
    end
  end

  # Each stream that waits for the client's window is reset, and one of these resets is too many.
  def test_over_http2_a_client_that_ends_with_more_resets_than_it_may_leaves_nothing_behind
    serving do
      connection = H2WebSocketConnection.new(connect, window: 0)
      open = -> { Array.new(90) { connection.connect("/events?topic=#{topic}", method: "GET", protocol: nil) } }
      open.call.each(&:reset)
      until_subscribers(0)
      streams = open.call
      until_subscribers(90)
      connection.client.close_write
      connection.take_frame until streams.all?(&:over?)
      until_subscribers(0)
    end
  end

  def test_in_mode_thread_a_stream_takes_no_thread
    serving(mode: :thread, threads: 1) do
      clients = Array.new(3) { events.tap(&:event) }
      PubSub.publish(topic, "hello")

      assert_equal %w[hello] * 3, clients.map { |client| client.event["data"] }
      clients.each(&:close)
    end
  end

  def test_clients_get_a_retry_time_when_the_server_stops
    client = nil
    serving do
      client = events.tap(&:event)
      until_subscribers(1)
    end

    assert_operator client.event["retry"].to_i, :<, 3000
    assert_nil client.event
    client.close
  end

  # The kernel takes some megabytes for it; then the bound counts.
  def test_a_client_that_does_not_read_is_closed_and_others_get_all
    serving do
      events.event
      slow = events.tap(&:event)
      good = events.tap(&:event)
      large = "x" * 200_000
      read = 100.times.count { |i| PubSub.publish(topic, "#{large}#{i}") && good.event["data"].end_with?("x#{i}") }

      assert_equal 100, read
      until_subscribers(1)
      good.close
      slow.close
    end
  end

  # The sockets that it accepts have its buffer.
  def shrink_send_buffer
    found = Dir.children("/proc/self/fd").map(&:to_i).find do |fd|
      socket = Socket.for_fd(fd).tap { |one| one.autoclose = false }
      next unless socket.getsockopt(:SOCKET, :ACCEPTCONN).bool && socket.local_address.ip_port == port

      socket.setsockopt(:SOCKET, :SNDBUF, 8_192)
    rescue SystemCallError
      nil # it is not a socket, or has been closed
    end
    raise "there is no listener" unless found
  end

  def slow_events(version)
    socket = Socket.new(:INET, :STREAM).tap { |one| one.setsockopt(:SOCKET, :RCVBUF, 4_096) }
    socket.connect(Addrinfo.tcp("127.0.0.1", port))
    EventStreamClient.new(socket, "/events?topic=#{topic}", version:).tap(&:event)
  end

  # The newest message is sent past the empty queue: what the kernel does not take waits, and the next ones behind it.
  def test_events_that_the_kernel_takes_in_part_arrive_whole_and_in_order
    serving do
      shrink_send_buffer
      clients = %w[1.1 1.0].map { |version| slow_events(version) }
      3.times do |round|
        texts = [(0...100_000).map { |number| number + round }.join(" "), "second", "", "x" * 30_000]
        texts.each { |text| PubSub.publish(topic, text) }
        read = clients.map { |client| texts.map { |text| client.event["data"] == text } }

        assert_equal [[true] * 4] * 2, read
      end
      clients.each(&:close)
    end
  end

  def test_a_client_that_does_not_read_gets_the_newest_message_where_it_wants_that
    serving do
      slow = events("&slow=coalesce").tap(&:event)
      large = "x" * 200_000
      100.times { |i| PubSub.publish(topic, "#{large}#{i}") }
      got = []
      got << slow.event["data"].delete_prefix(large).to_i until got.last == 99

      assert_equal got.sort, got
      slow.close
    end
  end

  def test_a_client_that_sends_without_an_end_is_closed
    serving do
      socket = connect
      socket.write("GET /events?topic=#{topic} HTTP/1.1\r\nHost: a\r\n\r\n")
      socket.gets("\r\n\r\n")
      until_subscribers(1)
      begin
        10.times { socket.write("x" * 65_536) }
      rescue SystemCallError
        nil # it is closed already
      end
      until_subscribers(0)
      socket.close
    end
  end

  def test_the_type_of_events_may_be_a_symbol
    assert_equal "event: update\n", Heddle::EventStream.new("a", event: :update).connection_settings[2]
  end

  def test_invalid_arguments_raise_with_a_reason
    slow = assert_raises(ArgumentError) { Heddle::EventStream.new("a", slow: :no) }
    event = assert_raises(ArgumentError) { Heddle::EventStream.new("a", event: "a\nb") }

    assert_match(/slow: is :no, but must be :close/, slow.message)
    assert_match(/one line/, event.message)
    ["", "é" * 251].each { |long| assert_raises(ArgumentError) { Heddle::EventStream.new("a", event: long) } }
  end

  # When the head of the response was sent, it would be too late for an answer.
  def test_a_topic_that_is_too_long_is_an_error_of_the_application
    serving do
      @topic = "x" * 1_025
      response = get("/events?topic=#{topic}")

      assert_equal "500", response.code
      assert_match(/ArgumentError: the topic has 1025 bytes, the limit is 1024/, errors.string)
      @topic = "#{name}#{rand(2**64)}".ljust(1_024, "x")
      client = events("&event=#{"e" * 500}")
      client.event
      PubSub.publish(topic, "hello")

      assert_equal "e" * 500, client.event["event"]
      client.close
    end
  end

  # As on a server that knows nothing of it: `call` gets an IO.
  def test_on_another_server_it_is_a_streaming_body
    reader, writer = IO.pipe
    thread = Thread.new { Heddle::EventStream.new(topic, event: "größe").call(writer) }
    assert_match(/\Aid: /, reader.gets("\n\n"))
    position = PubSub.publish(topic, "hellö\nworld")

    assert_equal "event: größe\nid: #{position}\ndata: hellö\ndata: world\n\n", reader.gets("\n\n")
    reader.close
    PubSub.publish(topic, "nobody reads it")
    thread.join
    assert_predicate writer, :closed?
  end
end

# Rack::Lint wraps the body: a fiber sends the events.
class HiddenEventStreamTest < Minitest::Test
  include EventStreamCases

  def hidden? = true
end

# As in front of many applications: neither can do anything with a streaming body.
class EventStreamBehindMiddlewareTest < Minitest::Test
  include EventStreamCases

  def hidden? = false

  def app = Rack::Deflater.new(Rack::ETag.new(APP, "no-cache"))

  def events(query = "", headers = "", **) = super(query, "#{headers}Accept-Encoding: gzip, br\r\n", **)
end
