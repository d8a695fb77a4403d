# frozen_string_literal: true

# test: smoke

require "test_helper"
require "server/web_socket_helpers"
require "support/constants"
require "support/h2_web_socket_client"
require "json"
require "rack/urlmap"

# Live pages with a client that may send anything.
class LiveTest < Minitest::Test
  include WebSocketHelpers

  # Counts, for itself and, by a topic, for all.
  class Counter < Heddle::Live::Page
    class << self
      attr_accessor :ended, :started, :go
    end

    template text: "<h1><%= @title %></h1><p><%= @count %> <%= @heard %></p>"
    event :add, by: Integer
    event :name, text: String, weight: Float
    event :shout, text: String
    event :fail
    event :later
    event :fail_later
    event :fail_when_told

    def mount(params)
      raise Heddle::Live::NotFoundError if params["title"] == "none"

      @title = params["title"]
      @count = 0
      subscribe(:shouts) { |message| @heard = message.data }
    end

    def unmount = self.class.ended&.push(@count)

    def add(by:) = @count += by

    def name(text:, weight:) = @title = "#{text} #{weight}"

    def shout(text:) = Heddle::PubSub.publish(:shouts, text)

    def fail = raise("broken")

    def later = every(0.001) { @count += 1 }

    def fail_when_told
      self.class.started << true
      self.class.go.pop
      raise "broken when told"
    end

    def fail_later = every(0.001) { raise Class.new(Exception), "broken later" }

    def secret = @title = "reached"
  end

  def live(**, &) = @live ||= Heddle::Live.new(Counter, **, &)

  def serving_page(app = live, **, &) = serving(app, lint: false, **, &)

  # @return [String] the token of a page
  def token(query = "?title=A", headers = {})
    @page = get("/#{query}", headers)
    @page.body[/data-live="([^"]+)"/, 1]
  end

  # @return [Array(WebSocketClient, Hash)] connected, and its first message
  def open_page(query = "?title=A", id: nil, cookie: nil, token: nil)
    token ||= token(query, { "cookie" => cookie }.compact)
    client = dial("/live", **{ cookie: }.compact)
    client.text({ token:, id: }.compact.to_json)
    [client, hear(client)]
  end

  def hear(client) = JSON.parse(client.message || "null")

  def send_event(client, event, **values)
    client.text({ event:, values: values.transform_values(&:to_s) }.to_json)
  end

  # @return [Integer, nil] with which the server closes
  def close_code(client) = client.closing.code

  def test_the_first_paint_is_html_and_the_page_is_not_to_be_kept_or_framed
    serving_page do
      token("?title=%3Cb%3E")

      assert_includes @page.body, "<h1>&lt;b&gt;</h1><p>0 </p>"
      assert_equal "no-store", @page["cache-control"]
      assert_match(/script-src 'self';.* frame-ancestors 'self'/, @page["content-security-policy"])
      refute_match(/<script(?![^>]*src=)|\son\w+=/, @page.body, "the policy forbids scripts within the page")
      script = get(@page.body[/<script src="([^"]+)"/, 1])

      assert_equal %w[200 text/javascript], [script.code, script["content-type"]]
      assert_equal %w[404 404], ["/other", "/?title=none"].map { |path| get(path).code }
      assert_equal %w[400] * 3, ["/?title=%ff", "/?title=%", "/?#{"&" * 5_000}"].map { |path| get(path).code }
      assert_empty errors.string
    end
  end

  def test_the_path_that_a_page_is_mounted_at_is_escaped
    serving_page(->(env) { live.call(env.merge("SCRIPT_NAME" => '/"><script>alert(1)</script>')) }) do
      refute_includes get("/?title=A").body, "<script>alert"
    end
  end

  def test_a_client_with_many_kept_pages_pushes_out_its_own
    live { |env| env["HTTP_COOKIE"] }
    kept = live.instance_variable_get(:@kept)
    pages = Constants.replace(Heddle::Live, :MAX_KEPT, 2) do
      serving_page do
        ids = %w[ada bob bob bob].map do |cookie|
          client, first = open_page(cookie:)
          client.io.close
          until_statistics { kept.keys.map(&:id).include?(first["id"]) }
          first["id"]
        end
        [ids, kept.keys.map(&:id)]
      end
    end

    assert_equal pages.first.values_at(0, 3), pages.last
  end

  def test_addresses_of_a_network_are_one_owner_of_kept_pages
    kept = live.instance_variable_get(:@kept)
    app = lambda do |env|
      env["REMOTE_ADDR"] = env["HTTP_COOKIE"] if env["HTTP_COOKIE"]
      live.call(env)
    end
    pages = Constants.replace(Heddle::Live, :MAX_KEPT, 2) do
      serving_page(app) do
        %w[192.0.2.1 2001:db8::1 2001:db8::2 2001:db8::3].map do |cookie|
          client, first = open_page(cookie:)
          client.io.close
          until_statistics { kept.keys.map(&:id).include?(first["id"]) }
          first["id"]
        end
      end
    end

    assert_equal pages.values_at(0, 3), kept.keys.map(&:id)
  end

  def test_a_page_can_be_mounted_below_a_path
    serving_page(Rack::URLMap.new("/clicks" => live)) do
      page = get("/clicks?title=A").body
      script = page[/script src="([^"]+)"/, 1]
      socket = page[/data-live-socket="([^"]+)"/, 1]

      assert_equal ["200", "/clicks/live"], [get(script).code, socket]
      client = dial(socket)
      client.text({ token: page[/data-live="([^"]+)"/, 1] }.to_json)

      assert_equal [[0, "A", 0, ""]], hear(client)["pieces"]
    end
  end

  # With its script, without comments.
  def test_the_client_library_stays_small
    files = Dir[File.expand_path("../../lib/heddle/{live.rb,live/*}", __dir__)]
    lines = files.sum { |file| File.foreach(file).grep_v(%r{\A\s*(#|//|\z)}).size }

    assert_operator lines, :<=, 610
  end

  def test_an_event_calls_its_method_and_only_what_has_changed_comes_back
    serving_page do
      client, first = open_page

      assert_equal [[0, "A", 0, ""]], first["pieces"]
      assert_equal [["<h1>", "</h1><p>", " ", "</p>"]], first["statics"]
      client.text("1")
      send_event(client, "add", by: 5)

      assert_equal [{ "1" => 5 }], hear(client)
      client.text("1")
      send_event(client, "name", text: "<x>", weight: "1.5")

      assert_equal [{ "0" => "&lt;x&gt; 1.5" }], hear(client)
    end
  end

  def test_an_invalid_event_is_rejected_and_calls_no_method
    serving_page do
      [["secret"], ["instance_eval", { text: "exit" }], ["add"], ["add", { by: "1; 2" }], ["add", { by: "1", x: "2" }],
       ["name", { text: "a", weight: "nan" }], ["mount", { params: "x" }], [nil], [["add"], { by: "1" }]]
        .each do |event, values|
          client, = open_page
          client.text({ event:, values: values || {} }.to_json)

          assert_equal 1008, close_code(client), [event, values].inspect
        end
      client, = open_page
      client.text({ event: "add", values: { by: 1 } }.to_json)

      assert_equal 1008, close_code(client), "a value is text"
    end
  end

  def test_an_invalid_message_is_rejected
    serving_page do
      [["{", 1007], ["[]", 1008], ["2", 1008], ["[" * 2_000, 1007], ["\"#{"x" * 20_000}\"", 1009]].each do |sent, code|
        client, = open_page
        client.text(sent)

        assert_equal code, close_code(client), sent[0, 20]
      end
      ["{\"event\":\"shout\",\"values\":{\"text\":\"\xFF\"}}", "{\"token\":\"\xFF.a\"}", "\xFF"].each do |sent|
        client, = open_page
        client.binary(sent)

        assert_equal 1007, close_code(client), "not UTF-8: #{sent.inspect}"
      end
      client, = open_page
      client.binary("1")
      client.text("1")

      assert_equal 1008, close_code(client), "an acknowledgement of nothing"
    end
  end

  def test_a_token_that_was_not_made_here_for_these_parameters_is_refused
    other = Heddle::Live::Token.new("y" * 32, Counter.name).make({ "title" => "B" }, nil)
    serving_page do
      good = token
      text, signature = good.split(".")
      forged = [JSON.generate([{ "title" => "admin" }, nil, Time.now.to_i])].pack("m0")
      ["#{forged}.#{signature}", "#{text}.#{"0" * 64}", text, other, "", nil, 7, good.upcase].each do |token|
        client = dial("/live")
        client.text({ token: }.to_json)

        assert_equal({ "reload" => true }, hear(client), token.inspect)
        assert_equal 1008, close_code(client)
      end
      client = dial("/live")
      send_event(client, "add", by: 1)

      assert_equal({ "reload" => true }, hear(client), "an event before the token")
    end
  end

  def test_a_token_is_good_for_a_day
    tokens = Heddle::Live::Token.new("x" * 32, "a")
    made = tokens.make({ "a" => "b" }, "ann")

    assert_equal({ "a" => "b" }, tokens.read(made, "ann"))
    assert_nil tokens.read(made, "bob")
    later = Time.now + 86_500
    Time.stub(:now, later) { assert_nil tokens.read(made, "ann") }
  end

  def test_the_page_of_another_user_cannot_be_joined
    app = live { |env| env["HTTP_COOKIE"]&.delete_prefix("user=") }
    serving_page(app) do
      mine = token("?title=A", { "cookie" => "user=ann" })
      client, first = open_page(cookie: "user=ann", token: mine)
      client.text("1")
      thief, answer = open_page(cookie: "user=bob", token: mine, id: first["id"])

      assert_equal [{ "reload" => true }, 1008], [answer, close_code(thief)]
      own, other = open_page(cookie: "user=bob", id: first["id"])

      refute_equal first["id"], other["id"]
      send_event(own, "add", by: 3)
      send_event(client, "add", by: 1)

      assert_equal [{ "1" => 1 }], hear(client), "its state is untouched"
    end
  end

  def test_another_site_may_not_connect
    serving_page do
      assert_equal 403, dial("/live", origin: "http://elsewhere.example").status
      assert_equal 101, dial("/live", origin: "http://127.0.0.1:#{port}", host: "127.0.0.1:#{port}").status
    end
  end

  # A hundred, and fifty a second: so many more that a busy machine doesn't take that long for them.
  def test_too_many_events_close_the_socket
    serving_page do
      client, = open_page
      writer = Thread.new { 5_000.times { send_event(client, "add", by: 1) } }
      writer.report_on_exception = false

      assert_equal 1008, close_code(client)
    ensure
      writer&.kill&.join
    end
  end

  def test_a_client_that_has_not_applied_a_patch_gets_no_other_until_it_has
    serving_page do
      client, = open_page
      5.times { send_event(client, "add", by: 1) }
      client.text("1") # the first message; the events before it have sent nothing

      assert_equal [{ "1" => 5 }], hear(client)
      2.times { send_event(client, "add", by: 1) }
      client.text("1")

      assert_equal [{ "1" => 7 }], hear(client)
    end
  end

  def test_messages_of_a_topic_reach_every_page
    serving_page do
      clients = Array.new(2) { open_page.first }
      clients.each { |client| client.text("1") }
      send_event(clients.first, "shout", text: "<héllo>")

      assert_equal [[{ "2" => "&lt;héllo&gt;" }]] * 2, clients.map { |client| hear(client) }
    end
  end

  def test_the_socket_may_be_a_stream_of_http2
    serving_page(http2_websockets: true) do
      good = token
      client = H2WebSocketClient.new(H2WebSocketConnection.new(connect).connect("/live"))
      @clients = [client]
      client.text({ token: good }.to_json)

      assert_equal [[0, "A", 0, ""]], hear(client)["pieces"]
    end
  end

  def test_time_passes_in_a_page
    serving_page do
      client, = open_page
      client.text("1")
      send_event(client, "later")
      counts = Array.new(3) { hear(client).first["1"].tap { client.text("1") } }

      assert_equal counts.uniq.sort, counts
    end
  end

  def test_a_page_keeps_its_state_after_its_connection_broke
    serving_page do
      good = token
      client, first = open_page(token: good)
      client.text("1")
      send_event(client, "add", by: 5)
      hear(client)
      client.io.close
      back, again = open_page(token: good, id: first["id"])

      assert_equal [first["id"], [[0, "A", 5, ""]]], again.values_at("id", "pieces")
      back.text("1")
      _, other = open_page("?title=B", id: first["id"])

      refute_equal first["id"], other["id"], "parameters of another page"
    end
  end

  def test_a_page_whose_client_leaves_ends
    Counter.ended = Thread::Queue.new
    serving_page do
      client, first = open_page
      client.text("1")
      send_event(client, "add", by: 7)
      hear(client)
      client.close(1001)

      assert_equal 7, Counter.ended.pop(timeout: PATIENCE)
      _, again = open_page(id: first["id"])

      refute_equal first["id"], again["id"]
    end
  ensure
    Counter.ended = nil
  end

  def test_a_method_that_fails_closes_its_page_and_no_other
    serving_page do
      other, = open_page
      other.text("1")
      client, first = open_page
      send_event(client, "fail")

      assert_equal 1011, close_code(client)
      assert_match(/Connection#on_message failed.*broken/, errors.string)
      _, again = open_page(id: first["id"])

      refute_equal first["id"], again["id"], "its state is in question"
      send_event(other, "add", by: 1)

      assert_equal [{ "1" => 1 }], hear(other)
    end
  end

  # The runner has its messages already when the first of them fails.
  def test_events_that_wait_for_a_page_that_has_failed_are_dropped
    Counter.started, Counter.go = Array.new(2) { Thread::Queue.new }
    serving_page do
      client, = open_page
      send_event(client, "fail_when_told")
      Counter.started.pop(timeout: PATIENCE)
      3.times { send_event(client, "add", by: 1) }
      client.write(9, "all came")
      assert_equal "all came", client.read.payload
      Counter.go << true

      assert_equal 1011, close_code(client)
    end

    assert_equal 1, errors.string.scan("failed:").size, errors.string
    assert_empty live.instance_variable_get(:@kept), "it can't come back"
  end

  # A page whose callback `hold` keeps messages and timers waiting.
  class Slow < Heddle::Live::Page
    template text: "slow"

    class << self
      attr_accessor :held, :go, :ticks
    end

    def mount(_params) = every(0.001) { self.class.ticks << true }

    def hold
      self.class.held << true
      self.class.go.pop
    end
  end

  # Calls the block with a page's session while the page is busy and more messages come than it may keep.
  def overflowing
    Slow.held, Slow.go, Slow.ticks = Array.new(3) { Thread::Queue.new }
    Heddle.run do
      ended = Thread::Queue.new
      session = Heddle::Live::Session.new(Slow, {}, nil) { ended << true }
      session.mount
      Slow.ticks.pop
      Heddle.async { session.call(:hold, {}) }
      Slow.held.pop
      yield session, ended
    end
  end

  def overflow(session) = 2_000.times { |number| session.post(->(_) {}, number) }

  def test_timers_of_a_page_continue_after_it_has_lost_messages
    overflowing do |session, ended|
      sleep(0.001) until session.instance_variable_get(:@inbox).any? # the timer waits
      overflow(session)
      Slow.ticks.clear
      Slow.go.close

      assert Slow.ticks.pop(timeout: PATIENCE)
      session.finish
      ended.pop
    end
  end

  def test_page_that_is_to_end_ends_after_it_has_lost_messages
    overflowing do |session, ended|
      session.finish
      overflow(session)
      Slow.go.close

      assert ended.pop(timeout: PATIENCE)
    end
  end

  # RSpec::Mocks::MockExpectationError, SystemStackError.
  def test_a_timer_that_raises_outside_standard_error_ends_its_page_only
    serving_page do
      other, = open_page
      other.text("1")
      client, = open_page
      send_event(client, "fail_later")

      assert_equal 1011, close_code(client)
      send_event(other, "add", by: 1)

      assert_equal [{ "1" => 1 }], hear(other)
    end
    assert_match(/a page of Heddle::Live has failed: .*broken later/, errors.string)
  end

  def test_a_page_without_a_template_is_refused_before_the_first_request
    bare = Class.new(Heddle::Live::Page)
    error = assert_raises(ArgumentError) { Heddle::Live.new(bare) }

    assert_includes error.message, "#{bare} has no template: declare one, such as template \"page.erb\""
  end

  def test_a_secret_must_be_long
    error = assert_raises(ArgumentError) { Heddle::Live.new(Counter, secret: "short") }

    assert_includes error.message, "needs at least 32"
  end
end
