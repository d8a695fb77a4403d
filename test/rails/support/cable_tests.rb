# frozen_string_literal: true

require "support/bundle"
require "support/h2_web_socket_client"
require "support/served_process"
require "support/web_socket_client"
require "tmpdir"
require_relative "cable_socket"

# Heddle::Cable, under Rails with actioncable-next: what one server serves, for all tests of a class.
module CableTests
  FOLDER = File.expand_path("..", __dir__)
  APPLICATION = File.join(FOLDER, "support/cable.ru")
  INSTALLED = Hash.new { |installed, gemfile| installed[gemfile] = Bundle.installed?(gemfile) }
  ROOM = CableSocket.identifier("RoomChannel", room: 7)

  def setup
    skip "needs the gems of #{gemfile}: bin/setup" unless INSTALLED[gemfile]
    @sockets = []
  end

  def teardown
    @sockets&.each(&:close)
    @own&.stop
  end

  def gemfile = File.join(FOLDER, "bundles/rails_#{version.tr(".", "_")}/Gemfile")

  def command(*options) = [*ServedProcess::HEDDLE, "serve", "--bind", "127.0.0.1:0", *options, APPLICATION]

  def environment = Bundle.environment(gemfile).merge("RAILS_ENV" => "production", "HEDDLE_WORKERS" => "0")

  def served = @own || ServedProcess.shared(command, environment:, folder: FOLDER)

  # A server of this test's own.
  def serve(*options, **more)
    environment = self.environment.merge(more.transform_keys(&:to_s))
    @own = ServedProcess.new(command(*options), environment:, folder: FOLDER)
  end

  def connect(**)
    CableSocket.new(served.uri, **).tap { |socket| @sockets << socket }
  end

  # One that has its welcome.
  def client(**)
    connect(**).tap { |socket| assert_equal "welcome", socket.read["type"] }
  end

  def subscribed(identifier, **)
    client(**).tap { |socket| assert_equal "confirm_subscription", socket.subscribe(identifier)["type"] }
  end

  def broadcast(stream, message)
    Net::HTTP.post_form(served.at("/broadcast"), stream:, message: JSON.generate(message))
  end

  def test_a_channels_broadcast_reaches_its_subscribers
    one, other = Array.new(2) { subscribed(ROOM) }
    one.perform(ROOM, "speak", text: "<b> ä")
    expected = { "identifier" => ROOM, "message" => { "text" => "<b> ä", "name" => "ada" } }

    assert_equal [expected, expected], [one.read, other.read]
  end

  def test_an_unsubscribed_client_gets_no_more_messages
    one = subscribed(ROOM)
    one.command("unsubscribe", ROOM)
    other = CableSocket.identifier("RoomChannel", room: 8)
    one.subscribe(other)
    broadcast("room:7", "seven")
    broadcast("room:8", "eight")

    assert_equal({ "identifier" => other, "message" => "eight" }, one.read)
  end

  def test_subscriptions_of_one_stream_are_distinguished
    identifiers = [ROOM, CableSocket.identifier("RoomChannel", room: 7, other: true)]
    one = client
    identifiers.each { |identifier| one.subscribe(identifier) }
    broadcast("room:7", 1)

    assert_equal identifiers.sort, Array.new(2) { one.read["identifier"] }.sort
  end

  def test_clients_get_pings
    assert_kind_of Integer, client.ping["message"]
  end

  def test_a_rejected_client_is_told_not_to_reconnect
    assert_equal({ "type" => "disconnect", "reason" => "unauthorized", "reconnect" => false }, connect(name: nil).read)
  end

  def test_a_connection_that_fails_to_connect_is_closed
    one = connect(name: "fails")

    assert_nil one.read
    assert_equal 1011, one.socket.close_code
  end

  ALL = CableSocket.identifier("AllKindsChannel")

  def message_with(client, key)
    loop do
      message = client.read or flunk("the socket has ended")
      return message if message["message"].is_a?(Hash) && message["message"].key?(key)
    end
  end

  def test_callbacks_timers_and_streams_with_a_block_run_as_in_action_cable
    one = client
    one.command("subscribe", ALL)

    assert message_with(one, "after").dig("message", "after")
    assert message_with(one, "tick").dig("message", "tick")
    50.times { |number| broadcast("doubled", number) }

    assert_equal Array.new(50) { |i| i * 2 }, Array.new(50) { message_with(one, "doubled").dig("message", "doubled") }
  end

  def test_callbacks_of_a_connection_run_once_for_each_call
    one = client
    one.command("subscribe", ALL)
    one.perform(ALL, "work")

    assert_equal([1, 2, 1], Array.new(3) { message_with(one, "work").dig("message", "work") })
  end

  def test_a_callback_gets_all_of_many_messages_that_come_at_once
    one = client
    one.command("subscribe", ALL)
    one.perform(ALL, "burst")

    assert_equal(Array.new(1_500) { |i| i * 2 },
                 Array.new(1_500) { message_with(one, "doubled").dig("message", "doubled") })
  end

  def test_a_rejected_subscription_gets_its_answer_and_no_messages
    rejected = CableSocket.identifier("AllKindsChannel", reject: true)
    one = client

    one.command("subscribe", rejected)

    assert_equal({ "identifier" => rejected, "type" => "reject_subscription" },
                 one.read.then { |first| first["type"] ? first : one.read })
  end

  def test_a_stream_whose_name_is_too_long_is_not_confirmed
    one = client
    one.command("subscribe", CableSocket.identifier("RoomChannel", room: "x" * 1_020))

    assert_equal({ "identifier" => ROOM, "type" => "confirm_subscription" }, one.subscribe(ROOM))
    wait_for_output("the topic has 1025 bytes, the limit is 1024")
  end

  def test_a_channel_that_fails_is_reported_and_its_connection_continues
    one = client
    one.command("subscribe", ALL)
    one.perform(ALL, "fail")
    one.perform(ALL, "fail_badly")
    one.perform(ALL, "rescued")

    assert_equal "KeyError", message_with(one, "rescued").dig("message", "rescued")
    wait_for_output("reported a channel fails false application.action_cable")
    wait_for_output("reported a channel fails badly false application.action_cable")
  end

  def test_a_clients_mistakes_are_one_line_each_without_a_backtrace
    one = client
    before = served.output.size
    one.command("x")
    one.command("message", "unknown", data: "{}")
    [[1], "{", "{}", '{"channel":1}', CableSocket.identifier("Kernel")].each do |identifier|
      one.command("subscribe", identifier)
    end

    assert_equal "confirm_subscription", one.subscribe(ROOM)["type"]
    one.command("message", ROOM, data: "{")
    ["[1]", '{"action":1}', '{"action":{"a":1}}'].each { |data| one.command("message", ROOM, data:) }
    one.socket.write("x")

    assert_nil one.read
    assert_equal 1007, one.socket.close_code
    wait_for_output("connection: a message must be a JSON object")
    lines = served.output[before..]

    # Lines about an earlier test's client may still come.
    mistakes = { "Received unrecognized command: x" => 1, "Unable to find subscription with identifier: unknown" => 1,
                 'the identifier must be a JSON object with a "channel"' => 4, "Channel not found: Kernel" => 1,
                 "the data must be a JSON object" => 2, 'the "action" must be a string' => 2 }

    assert_equal mistakes, lines.scan(/Ignoring a client's command: (.+)/).flatten.tally.slice(*mistakes.keys)
    refute_includes lines, "There was an exception"
  end

  def test_commands_and_subscriptions_have_limits
    one = client
    rooms = Array.new(500) { |i| CableSocket.identifier("RoomChannel", room: i + 100) }
    rooms.each { |room| one.command("subscribe", room) }

    assert_equal ["confirm_subscription"], rooms.map { one.read["type"] }.uniq
    assert_equal "reject_subscription", one.subscribe(ROOM)["type"]
    ignored = CableSocket.identifier("none")
    Thread.new { 50_000.times { one.command("unsubscribe", ignored) } }.report_on_exception = false
    nil while one.read

    assert_equal 1008, one.socket.close_code
  end

  def test_a_subscription_with_a_long_identifier_is_rejected
    one = client
    rooms = [8_000, 8_192].map { |size| CableSocket.identifier("RoomChannel", room: 7, pad: "x" * size) }

    assert_equal %w[confirm_subscription reject_subscription], rooms.map { |room| one.subscribe(room)["type"] }
  end

  def test_a_client_that_asks_for_histories_too_often_gets_none
    room = CableSocket.identifier("RoomChannel", room: rand(1_000_000_000))
    one = subscribed(room, extended: true)
    300.times { one.command("history", room, history: { since: Time.now.to_i }) }
    answers = Array.new(300) { one.read["type"] }

    assert_equal %w[confirm_history reject_history], [answers.first, answers.last]
  end

  def test_connections_are_ended_by_their_identifiers
    one = client(name: "eve")
    Net::HTTP.start(served.uri.host, served.uri.port) { |http| http.delete("/connections/eve") }

    assert_equal({ "type" => "disconnect", "reason" => "remote", "reconnect" => false }, one.read)
    assert_nil one.read
  end

  def test_a_client_that_was_away_gets_what_it_has_missed
    one = subscribed(ROOM, extended: true)
    broadcast("room:7", 1)
    first = one.read
    one.close
    [2, 3].each { |number| broadcast("room:7", number) }
    streams = { first["stream_id"] => first.slice("epoch", "offset") }
    other = client(extended: true)
    other.subscribe(ROOM, history: { streams: })

    assert_equal [2, 3, "confirm_history"], Array.new(3) { other.read.then { |one| one["message"] || one["type"] } }
  end

  def test_a_client_gets_what_was_sent_since_a_time
    stream = "room:#{rand(1_000_000_000)}"
    identifier = CableSocket.identifier("RoomChannel", room: stream.delete_prefix("room:").to_i)
    broadcast(stream, 1)
    one = client(extended: true)
    one.subscribe(identifier, history: { since: Time.now.to_i - 30 })

    assert_equal [1, "confirm_history"], Array.new(2) { one.read.then { |one| one["message"] || one["type"] } }
    one.command("pong")
    one.command("history", identifier, history: { since: Time.now.to_i - 30 })

    assert_equal [1, "confirm_history"], Array.new(2) { one.read.then { |one| one["message"] || one["type"] } }
  end

  def test_a_history_that_is_gone_is_rejected
    one = client(extended: true)
    streams = { "room:7" => { epoch: "x" * 12, offset: 3 } }
    one.subscribe(ROOM, history: { streams: })

    assert_equal({ "type" => "reject_history", "identifier" => ROOM }, one.read)
    broadcast("room:7", 4)

    assert_equal 4, one.read["message"]
  end

  # One that does not read, behind a window of a few kB.
  def test_a_client_that_reads_nothing_is_closed_and_delays_no_other
    slow = Socket.new(:INET, :STREAM).tap { |socket| socket.setsockopt(:SOCKET, :RCVBUF, 4_096) }
    slow.connect(Addrinfo.tcp(served.uri.host, served.uri.port))
    client = WebSocketClient.new(slow, "/cable?name=ada", origin: served.uri.to_s.chomp("/"),
                                                          host: served.uri.authority,
                                                          sec_websocket_protocol: "actioncable-v1-json")
    identifier = CableSocket.identifier("RoomChannel", room: 99)
    client.text(JSON.generate(command: "subscribe", identifier:))
    other = subscribed(identifier)
    Array.new(2) { client.message }
    # One at a time: the other one is never behind, however busy the machine is. Twice as much as the kernel and the
    # server keep for the slow one, and no more: the closed connection waits for its reader for some seconds only.
    sizes = Array.new(80) do
      other.perform(identifier, "shout")
      other.read["message"].size
    end

    assert_equal [100_000], sizes.uniq
    assert_equal 1008, client.closing.code
  ensure
    slow&.close
  end

  # What is broadcast by each of these servers.
  def assert_broadcasts_reach(servers)
    sockets = servers.map do |server|
      CableSocket.new(server.uri).tap do |socket|
        @sockets << socket
        socket.read
        assert_equal "confirm_subscription", socket.subscribe(ROOM)["type"], server.output
      end
    end
    servers.each_index { |i| Net::HTTP.post_form(servers[i].at("/broadcast"), stream: "room:7", message: i.to_s) }

    assert_equal [servers.each_index.to_a], sockets.map { |one| servers.map { one.read["message"] }.sort }.uniq
  end

  def reload
    Process.kill("HUP", @own.pid)
    wait_for_output("reloaded", @reloads = (@reloads || 0) + 1)
  end

  def wait_for_output(text, count = 1)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until served.output.scan(text).size >= count
      flunk served.output if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
    end
  end

  def test_foreign_origins_are_refused
    foreign = assert_raises(Heddle::WebSocket::HandshakeError) { connect(origin: "https://foe.example") }

    assert_equal 404, foreign.status
    client(origin: "https://friend.example")
  end
end

# The same, with a server for each test.
module CableServerTests
  include CableTests

  def test_records_that_a_connection_is_identified_by_are_found_again
    Dir.mktmpdir do |folder|
      gone = File.join(folder, "gone")
      serve("--workers", "1", OWNERS_GONE: gone)
      one = subscribed(ROOM, name: "owner7")
      reload
      one.perform(ROOM, "whose")

      assert_equal({ "owner" => "7" }, one.read["message"])
      File.write(gone, "")
      reload

      assert_nil one.read, "the record is not there any more"
      assert_equal 1012, one.socket.close_code
    end
  end

  def test_with_another_adapter_messages_of_other_threads_reach_callbacks
    serve(CABLE_ADAPTER: "async")
    one = client
    one.command("subscribe", ALL)
    one.perform(ALL, "thread")

    assert_equal([0, 2, 4], Array.new(3) { message_with(one, "doubled").dig("message", "doubled") })
  end

  def test_ended_connections_are_not_kept_even_if_a_channel_fails_to_leave
    identifiers = [true, false].map { |fail| CableSocket.identifier("LeavingChannel", fail:) }
    20.times { client.tap { |one| identifiers.each { |identifier| one.subscribe(identifier) } }.close }
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
    until (held = served.get("/held").body.to_i) < 10
      flunk "#{held} channels are held" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.05
    end
  end

  def test_over_a_reload_connections_stay_and_miss_nothing
    serve("--workers", "2")
    sockets = Array.new(8) { |i| subscribed(ROOM, extended: i.even?) }
    2.times do |round|
      20.times { |i| broadcast("room:7", (round * 40) + i) }
      reload
      20.times { |i| broadcast("room:7", (round * 40) + 20 + i) }
    end

    assert_equal [(0...80).to_a], sockets.map { |one| Array.new(80) { one.read["message"] } }.uniq
    sockets.first.perform(ROOM, "speak", text: "still here")

    assert_equal "ada", sockets.last.read.dig("message", "name")
  end

  def test_at_a_reload_a_connection_with_state_of_its_own_comes_back
    serve("--workers", "1", HEDDLE_STOP_TIMEOUT: "2")
    one = client
    one.command("subscribe", ALL)
    message_with(one, "tick")
    Process.kill("HUP", @own.pid)

    assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, one.read)
    assert_nil one.read
    assert_equal 1012, one.socket.close_code
  end

  def test_when_the_server_stops_all_clients_are_asked_to_come_back
    serve("--workers", "1", HEDDLE_STOP_TIMEOUT: "2")
    sockets = Array.new(8) { subscribed(ROOM) }
    Process.kill("TERM", @own.pid)

    assert_equal [[{ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, nil, 1001]],
                 sockets.map { |one| [one.read, one.read, one.socket.close_code] }.uniq
    assert_equal 0, @own.wait.exitstatus
    @own = nil
  end

  def test_in_mode_thread_action_cable_serves_as_it_does_elsewhere
    serve("--mode", "thread")
    assert_broadcasts_reach([@own])
  end

  def test_workers_that_are_forked_from_one_that_has_served_send_pings
    serve("--workers", "2", "--refork-after", "20")
    sockets = Array.new(8) { subscribed(ROOM) }
    one = client
    30.times { |number| broadcast("room:7", number) }
    wait_for_output("reforked: 2 workers serve")
    sockets << one << client

    sockets.each { |socket| assert_kind_of Integer, socket.ping["message"] }
  end

  def test_over_http2_a_stream_carries_the_connection
    serve(HEDDLE_HTTP2_WEBSOCKETS: "on")
    connection = H2WebSocketConnection.new(TCPSocket.new(@own.uri.host, @own.uri.port))
    one = H2WebSocketClient.new(connection.connect("/cable?name=ada", origin: "http://127.0.0.1",
                                                                      sec_websocket_protocol: "actioncable-v1-json"))

    assert_equal [200, { "type" => "welcome" }], [one.status, JSON.parse(one.message)]
    one.text(JSON.generate(command: "subscribe", identifier: ROOM))
    one.message
    broadcast("room:7", "over HTTP/2")

    assert_equal({ "identifier" => ROOM, "message" => "over HTTP/2" }, JSON.parse(one.message))
  ensure
    connection&.close
  end
end
