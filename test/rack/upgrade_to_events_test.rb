# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/event_stream"
require "server/server_helpers"
require "support/event_stream_client"
require "support/h2_web_socket_client"

# `env["rack.upgrade?"] == :sse`, as Iodine and Agoo define it: a handler writes the events.
module UpgradeToEventsCases
  include ServerHelpers

  PubSub = Heddle::PubSub
  ACCEPT = "Accept: text/event-stream\r\n"

  # Notes what it is called for.
  class Handler
    attr_reader :calls, :clients

    # @yieldparam client [Heddle::WebSocket::ServerSocket] that has come
    def initialize(&block)
      @block = block
      @calls = Thread::Queue.new
      @clients = Thread::Queue.new
    end

    def on_open(client)
      @calls << :open
      @block&.call(client)
      @clients << client
    end

    def on_message(_client, message) = @calls << [:message, message]
    def on_drained(_client) = @calls << :drained
    def on_shutdown(client) = @calls << [:shutdown, client.write("bye")]
    def on_close(client) = @calls << [:close, client.close_code, client.open?, client.write("late")]

    # @return [Object] the next call that is none of on_drained
    def call
      loop do
        call = @calls.pop(timeout: ServerHelpers::PATIENCE) or raise "nothing was called"
        return call unless call == :drained
      end
    end
  end

  def setup = PubSub::History.open(16 << 20, 100, 300)

  def topic = @topic ||= "#{name}-#{rand(2**64)}"

  # In the mode of the test's class.
  def serving(handler, headers: {}, stop_timeout: 30, **)
    app = lambda do |env|
      next [406, {}, [env["rack.upgrade?"].inspect]] unless env["rack.upgrade?"] == :sse

      env["rack.upgrade"] = handler
      [200, headers, []]
    end
    super(app, lint: false, mode:, stop_timeout:, **)
  end

  def events(headers = ACCEPT, **) = EventStreamClient.new(connect, "/events", headers, **)

  def test_writes_of_a_handler_are_sent_as_events
    handler = Handler.new { |client| client.write("one\ntwo\r\n\rthree") }
    serving(handler, headers: { "x-more" => "yes", "content-length" => "0" }) do
      stream = events
      assert_match(%r{\AHTTP/1.1 200 .*^content-type: text/event-stream\r$}m, stream.head)
      assert_match(/^x-more: yes\r$/, stream.head)
      refute_match(/content-length|chunked/, stream.head)
      assert_equal({ "data" => "one\ntwo\n\nthree" }, stream.event)
      client = handler.clients.pop(timeout: PATIENCE)

      assert client.write("grüße".b), "bytes that are UTF-8"
      assert_equal "grüße".b, stream.event["data"].b
      assert_raises(ArgumentError) { client.write("\xff".b) }
      large = "x" * 200_000
      client.write(large)
      assert_equal large, stream.event["data"]
      assert_includes Array.new(2) { handler.calls.pop(timeout: PATIENCE) }, :drained
      stream.close
    end
  end

  def test_a_client_that_leaves_is_noticed_without_an_event_and_what_it_sends_means_nothing
    handler = Handler.new
    serving(handler) do
      stream = events
      assert_equal :open, handler.call
      stream.send_bytes("\x81\x05hello")
      stream.leave

      assert_equal [:close, 1006, false, false], handler.call
      stream.close
    end
  end

  def test_the_handler_ends_the_stream
    handler = Handler.new { |client| client.write("last") && client.close }
    serving(handler) do
      stream = events

      assert_equal "last", stream.event["data"]
      assert_equal [nil, nil], [stream.event["data"], stream.event], "a comment, and the end"
      assert_equal [:open, [:close, 1000, false, false]], [handler.call, handler.call]
      stream.close
    end
  end

  def test_topics_reach_it_with_their_positions_and_a_reset_where_messages_are_lost
    handler = Handler.new { |client| client.subscribe(topic, since: "unknown:1") }
    last = PubSub.publish(topic, "before")
    serving(handler) do
      stream = events

      assert_equal({ "event" => "reset", "id" => last, "data" => "reset" }, stream.event)
      position = PubSub.publish(topic, "hello")
      assert_equal({ "id" => position, "data" => "hello" }, stream.event)
      stream.close
    end
  end

  def test_a_stopping_server_calls_the_handler_and_sends_a_random_retry_time
    handler = Handler.new
    stream = nil
    serving(handler) do
      stream = events
      handler.clients.pop(timeout: PATIENCE)
    end

    assert_equal "bye", stream.event["data"]
    assert_match(/\A\d+\z/, stream.event["retry"])
    assert_nil stream.event
    assert_equal [:open, [:shutdown, true], [:close, 1001, false, false]], Array.new(3) { handler.call }
    stream.close
  end

  def test_over_http2
    handler = Handler.new { |client| client.write("hello") }
    serving(handler) do
      connection = H2WebSocketConnection.new(connect)
      ended, reset = Array.new(2) do
        connection.connect("/events", method: "GET", protocol: nil, accept: "text/event-stream")
      end
      assert_equal ["data: hello\n\n"] * 2, [ended, reset].map { |stream| stream.readpartial(100) }
      first, second = Array.new(2) { handler.clients.pop(timeout: PATIENCE) }
      second.write("x" * 100_000)
      text = +""
      text << reset.readpartial(65_536) until text.end_with?("x\n\n")
      assert_equal "data: #{"x" * 100_000}\n\n", text
      first.close
      connection.take_frame until ended.over?
      assert_equal [true, nil], [ended.ended, ended.reset_frame]
      reset.reset
      calls = Array.new(4) { handler.call }

      assert_equal %i[open open], calls.grep(Symbol)
      assert_equal [1000, 1006], calls.grep(Array).map { |call| call[1] }
      connection.close
    end
  end

  def test_other_requests_get_no_event_stream
    serving(Handler.new) do
      ["*/*", "text/html, text/event-stream", "text/event-streams"].each do |type|
        answer = exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept: #{type}\r\n\r\n")

        assert_equal "nil", answer.split("\r\n\r\n")[1]
      end
      post = "POST / HTTP/1.1\r\nHost: a\r\n#{ACCEPT}Content-Length: 1\r\nConnection: close\r\n\r\nx"
      assert_match(/ 406 /, exchange(post))
      stream = events("accept: Text/Event-Stream; q=1\r\n", version: "1.0")

      assert_match(/ 200 /, stream.head)
      stream.close
    end
  end
end

class UpgradeToEventsTest < Minitest::Test
  include UpgradeToEventsCases

  def mode = :fiber

  def test_streams_that_wait_have_no_fiber
    handler = Handler.new
    serving(handler) do
      streams = Array.new(5) { events }
      5.times { handler.clients.pop(timeout: PATIENCE) }
      running = until_statistics { |statistics| statistics[:running] <= 1 }

      assert_operator running[:connections], :>=, 5
      streams.each(&:close)
    end
  end

  def test_a_client_that_reads_nothing_is_closed
    handler = Handler.new
    serving(handler, websocket_output_limit: 100_000) do
      stream = events
      client = handler.clients.pop(timeout: PATIENCE)
      100.times { client.write("x" * 1_000_000) }

      assert_equal [:open, [:close, 1008, false, false]], [handler.call, handler.call]
      refute_predicate client, :open?
      stream.close
    end
  end

  def test_patterns_and_blocks_are_refused_and_not_ignored
    errors = Thread::Queue.new
    handler = Handler.new do |client|
      errors << assert_raises(ArgumentError) { client.subscribe("room.*", match: :redis) }.message
      errors << assert_raises(ArgumentError) { client.subscribe(topic) { nil } }.message
    end
    serving(handler) do
      stream = events
      messages = Array.new(2) { errors.pop(timeout: PATIENCE) }

      assert_match(/patterns.*by name/, messages[0])
      assert_match(/block.*Heddle::PubSub\.subscribe/, messages[1])
      stream.close
    end
  end

  # A response that the application makes itself is not the handler's.
  def test_without_a_handler_the_response_is_sent_as_it_is
    app = lambda do |env|
      env["PATH_INFO"] == "/plain" ? [200, {}, [env["rack.upgrade?"].inspect]] : Heddle::EventStream.response(topic)
    end
    ServerHelpers.instance_method(:serving).bind_call(self, app, lint: false) do
      assert_match(/:sse\z/, exchange("GET /plain HTTP/1.1\r\nHost: a\r\n#{ACCEPT}Connection: close\r\n\r\n"))
      stream = events
      stream.event
      PubSub.publish(topic, "hello")

      assert_equal "hello", stream.event["data"]
      stream.close
    end
  end
end

class UpgradeToEventsInModeThreadTest < Minitest::Test
  include UpgradeToEventsCases

  def mode = :thread
end
