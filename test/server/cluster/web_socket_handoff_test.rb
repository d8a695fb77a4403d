# frozen_string_literal: true

require_relative "cluster_case"
require "support/certificates"
require "support/h2_web_socket_client"

# WebSockets that go to the next worker at a reload, because their handler allows it.
class ClusterWebSocketHandoffTest < Minitest::Test
  include ClusterCase

  # Counts its messages; what /publish?DATA says comes to all.
  COUNTER = <<~'RUBY'
    require "heddle"

    class Counter
      def self.load(state) = new(*state.split(" "))

      def initialize(kind, count = 0)
        @kind = kind
        @count = count.to_i
      end

      def dump
        case @kind
        when "fails" then raise "no dump"
        when "fails-badly" then raise Class.new(Exception), "never a dump"
        when "large" then "x" * 20_000
        when "nil" then nil
        when "symbol" then :state
        when "hangs" then sleep
        else "#{@kind} #{@count}"
        end
      end

      def on_open(client) = client.subscribe("all")
      def on_message(client, message) = client.write("#{$$} #{@count += 1} #{message}")
      def on_shutdown(client) = client.write("bye")
    end

    run do |env|
      if env["PATH_INFO"] == "/publish"
        Heddle::PubSub.publish("all", env["QUERY_STRING"])
        next [200, {}, []]
      end

      Heddle::WebSocket.upgrade(env, Counter.new(env["PATH_INFO"].delete_prefix("/")))
    end
  RUBY

  # What `load` does in it.
  LOAD = 'new(*state.split(" "))'

  def setup
    super
    write("config.ru", COUNTER)
  end

  def teardown
    @clients&.each { |client| client.io.close }
    super
  end

  # New code, whose `load` does something else.
  def write_load(code) = write("config.ru", COUNTER.sub(LOAD) { code })

  def dial(kind = "counts")
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    WebSocketClient.new(socket, "/#{kind}").tap { |client| (@clients ||= []) << client }
  end

  # @return [Array(Integer, Integer)] the process that answers, and its count
  def ask_count(client)
    client.text("?")
    client.message.split.first(2).map(&:to_i)
  end

  def publish(number) = Net::HTTP.get_response(served.at("/publish?#{number}"))

  def reload(times = 1)
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code", times)
  end

  def test_sockets_stay_open_with_their_state_and_miss_no_message_of_their_topic
    serve
    clients = Array.new(8) { dial }
    before = clients.map { |client| ask_count(client) }
    publishing = Thread.new { (1..200).each { |number| publish(number) } }
    2.times { |number| reload(number + 1) }
    publishing.join

    clients.each { |client| assert_equal (1..200).map(&:to_s), Array.new(200) { client.message } }
    after = clients.map { |client| ask_count(client) }

    assert_equal [[1], [2]], [before, after].map { |found| found.map(&:last).uniq }
    assert_empty before.map(&:first) & after.map(&:first)
    publish("last")
    clients.each { |client| assert_equal "last", client.message }
  end

  def test_a_socket_in_the_middle_of_a_message_is_asked_to_reconnect
    serve
    client = dial
    ask_count(client)
    frame = client.frame(1, "halves")
    client.raw(frame.byteslice(0, 3))
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")

    assert_equal "bye", client.message
    assert_equal 1012, client.closing.code
  end

  def test_sockets_whose_state_cannot_be_saved_are_asked_to_reconnect
    serve
    clients = %w[fails fails-badly large nil symbol].map { |kind| dial(kind) }
    clients.each { |client| ask_count(client) }
    signal("HUP")

    clients.each do |client|
      assert_equal "bye", client.message
      assert_equal 1012, client.closing.code
    end
    wait_for("reloaded: 2 workers serve the new code")
    # The workers say these, and the master the other.
    [/Counter#dump failed: .*no dump/, /Counter#dump failed: .*never a dump/,
     /Counter#dump must return .* 16384 bytes, or nil, but has returned 20000 bytes/,
     /Counter#dump must return .*, but has returned Symbol/].each { |line| wait_for(line) }
  end

  def test_sockets_whose_handler_cannot_be_loaded_are_asked_to_reconnect
    serve
    client = dial
    ask_count(client)
    write_load("raise(Class.new(Exception), \"old \#{state}\")")
    signal("HUP")

    assert_equal 1012, client.closing.code
    wait_for("reloaded: 2 workers serve the new code")
    wait_for(/Counter\.load failed: .*old counts 1/)
  end

  def test_a_state_that_is_never_returned_delays_no_other_socket
    serve(workers: 1)
    clients = %w[hangs counts].map { |kind| dial(kind) }
    before = clients.map { |client| ask_count(client) }
    signal("HUP")

    assert_equal "bye", clients.first.message
    assert_equal 1012, clients.first.closing.code
    refute_equal before.last.first, ask_count(clients.last).first
    wait_for("Counter#dump failed: ")
  end

  # The first of three sockets has its time, and the others none: thousands of them may come.
  def test_a_handler_that_is_never_loaded_delays_no_other_connection
    serve(workers: 1)
    clients = Array.new(3) { dial.tap { |client| ask_count(client) } }
    kept = ask("/")

    assert_match(/\AHTTP\S+ 426 /, kept.readpartial(10_000))
    write_load("sleep")
    signal("HUP")

    assert_equal [1012] * 3, clients.map { |client| client.closing.code }
    kept.write(format(GET, "/"))

    assert_match(/\AHTTP\S+ 426 /, kept.readpartial(10_000))
    wait_for("Counter.load failed: ")
    assert_equal 1, said("Counter.load failed"), served.output
  ensure
    kept&.close
  end

  # Such as that of a pool: it says nothing of the next socket.
  def test_a_time_limit_of_the_handlers_own_ends_only_its_socket
    serve(workers: 1)
    clients = %w[limited counts].map { |kind| dial(kind).tap { |client| ask_count(client) } }
    write_load("state.start_with?(\"limited\") ? Heddle.timeout(0.001) { sleep } : #{LOAD}")
    signal("HUP")

    assert_equal 1012, clients.first.closing.code
    assert_equal 2, ask_count(clients.last).last
  end

  def test_sockets_whose_loader_returns_no_handler_are_asked_to_reconnect
    serve
    client = dial
    ask_count(client)
    write_load("nil")
    signal("HUP")

    assert_equal 1012, client.closing.code
    wait_for("load must return a handler")
  end

  def test_sockets_over_tls_are_asked_to_reconnect
    certificate, key = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "-b", "tls://127.0.0.1:0", "--tls-cert", certificate,
               "--tls-key", key]
    @served = ServedProcess.new(command, folder: @folder, environment: { "RACK_ENV" => "production" },
                                         address: %r{(https://[^\s/]+:\d+)})
    tls = OpenSSL::SSL::SSLSocket.new(TCPSocket.new(served.uri.host, served.uri.port)).connect
    @clients = [client = WebSocketClient.new(tls, "/counts")]
    ask_count(client)
    signal("HUP")

    assert_equal "bye", client.message
    assert_equal 1012, client.closing.code
  end

  def test_sockets_over_http2_are_asked_to_reconnect
    write("config/heddle.rb", "http2_websockets true\n")
    serve
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    @clients = [client = H2WebSocketClient.new(H2WebSocketConnection.new(socket).connect("/counts"))]
    ask_count(client)
    signal("HUP")

    assert_equal "bye", client.message
    assert_equal 1012, client.closing.code
  end

  def test_pings_continue_in_the_other_worker
    write("config/heddle.rb", "websocket_ping 0.2\n")
    serve
    client = dial
    before, = ask_count(client)
    reload
    client.text("?")
    frame = client.read until frame&.opcode == 1

    refute_equal before, frame.payload.to_i
    frame = client.read until frame.opcode == 9
  end
end
