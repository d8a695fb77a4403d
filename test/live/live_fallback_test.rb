# frozen_string_literal: true

require "test_helper"
require "server/server_helpers"
require "support/event_stream_client"
require "support/web_socket_client"
require "heddle/live"

# Live pages of clients without WebSockets: an event stream, and a POST for each message.
class LiveFallbackTest < Minitest::Test
  include ServerHelpers

  # Counts.
  class Counter < Heddle::Live::Page
    class << self
      attr_accessor :began, :gate
    end

    template text: "<p><%= @count %></p>"
    event :add, by: Integer
    event :fail
    event :fail_badly
    event :wait

    def mount(_params) = @count = 0
    def add(by:) = @count += by
    def fail = raise("broken")
    def fail_badly = raise(Class.new(Exception), "broken badly")

    def wait
      self.class.began << true
      @count += self.class.gate.pop
    end
  end

  # Waits in `mount` after its client has connected.
  class Slow < Counter
    def mount(_params)
      super
      return unless connected?

      self.class.began << true
      self.class.gate.pop
    end
  end

  # A stream, with the key that its first event has.
  class Client < EventStreamClient
    attr_reader :key

    def initialize(...)
      super
      @key = event&.fetch("data") if head.start_with?("HTTP/1.1 200")
    end

    # @return [Object, nil] the next message; nil: the stream has ended
    def message
      while (found = event)
        return JSON.parse(found["data"]) if found.key?("data")
      end
    end
  end

  ACCEPT = "Accept: text/event-stream\r\n"

  def live(**, &) = @live ||= Heddle::Live.new(Counter, **, &)

  def serving_page(app = live, lint: false, **, &) = serving(app, lint:, **, &)

  def stream(fields = "") = Client.new(connect, "/live", ACCEPT + fields)

  # @return [String] the status of the answer
  def post(key, message, headers = {}, to: port)
    message = JSON.generate(message) unless message.is_a?(String)
    Net::HTTP.start("127.0.0.1", to) do |http|
      http.post("/live", message, { "x-stream-key" => key, "content-type" => "text/plain", **headers }.compact).code
    end
  end

  def token(headers = {}) = get("/?a=b", headers).body[/data-live="([^"]+)"/, 1]

  # @return [Array(Client, Hash)] connected, and its first message
  def open_page(token: token(), id: nil)
    client = stream
    assert_equal "204", post(client.key, { token:, id: }.compact)
    [client, client.message]
  end

  def add(client, by) = post(client.key, { event: "add", values: { by: by.to_s } })

  def test_events_are_posted_and_what_has_changed_comes_as_an_event
    serving_page do
      client, first = open_page

      assert_match(%r{^content-type: text/event-stream\r$}, client.head)
      assert_equal [[0, 0]], first["pieces"]
      assert_equal %w[204 204], [add(client, 2), post(client.key, "1")]
      assert_equal [{ "0" => 2 }], client.message
      add(client, 3)
      add(client, 4)
      post(client.key, "1")

      assert_equal [{ "0" => 9 }], client.message, "a client that has not applied a patch gets no other"
      client.close
    end
  end

  def test_a_middleware_may_hide_the_body
    serving_page(lint: true, stop_timeout: 0) do
      client, first = open_page

      assert_equal [[0, 0]], first["pieces"]
      client.close
    end
  end

  def test_a_page_keeps_its_state_after_its_stream_broke
    serving_page do
      good = token
      client, first = open_page(token: good)
      post(client.key, "1")
      add(client, 5)
      client.message
      client.close
      back, again = open_page(token: good, id: first["id"])

      assert_equal [first["id"], [[0, 5]]], again.values_at("id", "pieces")
      back.close
    end
  end

  def test_a_client_that_leaves_ends_no_event_that_runs
    Counter.began = Thread::Queue.new
    Counter.gate = Thread::Queue.new
    serving_page do
      good = token
      others = ObjectSpace.each_object(Heddle::WebSocket::FallbackSocket).to_a
      client, first = open_page(token: good)
      body = (ObjectSpace.each_object(Heddle::WebSocket::FallbackSocket).to_a - others).fetch(0)
      post(client.key, { event: "wait", values: {} })
      Counter.began.pop(timeout: PATIENCE)
      client.close
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      Thread.pass while body.open? && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline

      refute_predicate body, :open?
      Counter.gate << 7
      back, again = open_page(token: good, id: first["id"])

      assert_equal [first["id"], [[0, 7]]], again.values_at("id", "pieces")
      back.close
    end
  end

  def test_a_page_whose_client_leaves_while_it_is_mounted_is_kept_for_a_while_only
    Slow.began = Thread::Queue.new
    Slow.gate = Thread::Queue.new
    serving_page(@live = Heddle::Live.new(Slow)) do
      client = stream
      post(client.key, { token: })
      Slow.began.pop(timeout: PATIENCE)
      client.close
      wait_until { ObjectSpace.each_object(Heddle::WebSocket::FallbackSocket).none?(&:open?) }
      Slow.gate << true
      wait_until { @live.instance_variable_get(:@sessions).any? }
      wait_until { @live.instance_variable_get(:@kept).any? }

      assert_equal 1, @live.instance_variable_get(:@kept).size
    ensure
      Slow.gate.close
    end
  end

  def wait_until
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 5
    Thread.pass until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
  end

  def test_a_page_may_change_between_a_socket_and_a_stream
    serving_page do
      good = token
      socket = WebSocketClient.new(connect, "/live")
      socket.text({ token: good }.to_json)
      id = JSON.parse(socket.message)["id"]
      client, again = open_page(token: good, id:)

      assert_equal [id, 1000], [again["id"], socket.closing.code]
      client.close
      socket.io.close
    end
  end

  def test_an_invalid_event_ends_the_stream
    serving_page do
      [["{", nil], [{ event: "exit", values: {} }, nil], ["1", "1"]].each do |first, second|
        client, = open_page
        post(client.key, first)
        post(client.key, second) if second

        assert_nil client.message, first.inspect
      end
      assert_nil stream.tap { |client| post(client.key, "\xff\"".b) }.message
    end
  end

  def test_a_method_that_fails_ends_its_stream
    %w[fail fail_badly].each do |event|
      serving_page do
        client, = open_page
        post(client.key, { event:, values: {} })

        assert_nil client.message
      end
      assert_match(/Connection#on_message failed.*broken/, errors.string)
    end
  end

  def test_another_site_may_neither_listen_nor_send
    serving_page do
      assert_match(/\AHTTP\S+ 403 /, stream("Origin: http://elsewhere.example\r\n").head)
      client = stream
      own = "http://127.0.0.1:#{port}"

      assert_equal "403", post(client.key, { token: }, { "origin" => "http://elsewhere.example" })
      assert_equal "403", post(client.key, { token: }, { "origin" => "null" })
      assert_equal "204", post(client.key, { token: }, { "origin" => own })
      assert client.message
      client.close
    end
  end

  def test_messages_need_the_key_of_a_stream_of_the_same_user
    app = live { |env| env["HTTP_COOKIE"]&.delete_prefix("user=") }
    serving_page(app) do
      client = stream("Cookie: user=ann\r\n")
      text, = client.key.split(".")
      page = token("cookie" => "user=ann")
      forged = ["#{text}.#{"0" * 64}", text, nil, "", page].map { |key| post(key, "1", { "cookie" => "user=ann" }) }

      assert_equal ["403"] * 5, forged
      assert_equal %w[403 403], [post(client.key, "1", { "cookie" => "user=bob" }), post(client.key, "1")]
      assert_equal "204", post(client.key, { token: page }, { "cookie" => "user=ann" })
      assert client.message
      client.close
    end
  end

  # The block runs in a moment, as far as rates are concerned.
  def without_time(&)
    frozen = Class.new(Heddle::TokenBucket) { def now = 0 }
    make = ->(*arguments) { frozen.allocate.tap { |bucket| bucket.send(:initialize, *arguments) } }
    Heddle::TokenBucket.stub(:new, make, &)
  end

  def stream_keys(count)
    Heddle::PubSub::History.open(1 << 20, 100, 300)
    open = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/live", "HTTP_ACCEPT" => "text/event-stream" }
    Array.new(count) { live.call(open).last.instance_variable_get(:@key) }
  end

  # => the status
  def post_message(key, message, address = "192.0.2.1")
    post = { "REQUEST_METHOD" => "POST", "PATH_INFO" => "/live", "HTTP_X_STREAM_KEY" => key, "REMOTE_ADDR" => address }
    live.call({ **post, "rack.input" => StringIO.new(message) }).first
  end

  def test_messages_have_a_size_and_a_rate
    keys = stream_keys(2)

    without_time do
      assert_equal [204, 413], [post_message(keys[0], "x" * 16_384), post_message(keys[0], "x" * 16_385)]
      codes = Array.new(198) { post_message(keys[0], "1") }

      assert_equal [204] * 198, codes
      assert_equal [429, 204], [post_message(keys[0], "1"), post_message(keys[1], "1")], "another stream has its own"
    end
  end

  # A message of 16,000 bytes counts 16 of 2,000.
  def test_streams_of_an_owner_have_a_rate_together
    keys = stream_keys(2)

    without_time do
      codes = Array.new(126) { |i| post_message(keys[i % 2], "x" * 16_000, "2001:db8::#{i}") }

      assert_equal [[204] * 125, [429]], codes.each_slice(125).to_a
      assert_equal 204, post_message(keys[0], "1", "2001:db8:0:1::")
    end
  end

  def test_other_requests_for_the_socket_get_an_error_that_names_its_protocols
    serving_page do
      assert_equal "426", get("/live").code
      assert_equal "405", Net::HTTP.post(URI("http://127.0.0.1:#{port}/"), "").code
    end
  end

  def test_a_server_that_stops_waits_for_no_stream
    start(live, lint: false)
    client, = open_page
    server.stop

    assert wait_for_end
    assert_nil client.message
  end
end
