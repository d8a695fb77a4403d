# frozen_string_literal: true

require_relative "cluster_case"
require "support/certificates"
require "support/event_stream_client"
require "support/h2_web_socket_client"

# Event streams at a reload: those over plain HTTP/1.1 go to the next worker, the clients of all others come back.
class ClusterEventStreamHandoffTest < Minitest::Test
  include ClusterCase

  APP = <<~RUBY
    require "heddle"

    run do |env|
      case env["PATH_INFO"]
      when "/publish"
        Heddle::PubSub.publish("all", env["QUERY_STRING"].sub("large", "x" * 60_000))
        [200, {}, []]
      when "/stays"
        Heddle::EventStream.response("all", since: env["HTTP_LAST_EVENT_ID"], handoff: false)
      else Heddle::EventStream.response("all", since: env["HTTP_LAST_EVENT_ID"], event: "number")
      end
    end
  RUBY

  def setup
    super
    write("config.ru", APP)
  end

  def teardown
    @clients&.each(&:close)
    super
  end

  # The first event says where the stream begins.
  def listen(headers = "", version: "1.1", path: "/", socket: TCPSocket.new(served.uri.host, served.uri.port))
    EventStreamClient.new(socket, path, headers, version:).tap { |client| (@clients ||= []) << client }
  end

  def publish(number) = Net::HTTP.get_response(served.at("/publish?#{number}"))

  def reload(times = 1)
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code", times)
  end

  # Those of the workers that are there now.
  def subscribers = metrics["heddle_pubsub_subscribers"].values.sum

  def test_streams_stay_open_and_miss_no_message
    serve("--control", "unix:control.sock")
    clients = Array.new(8) { |i| listen(version: i == 7 ? "1.0" : "1.1").tap(&:event) }
    publishing = Thread.new { (1..200).each { |number| publish(number) } }
    2.times { |number| reload(number + 1) }
    publishing.join

    clients.each do |client|
      events = Array.new(200) { client.event }
      assert_equal (1..200).map(&:to_s), events.map { |event| event["data"] }
      assert_equal ["number"], events.map { |event| event["event"] }.uniq
    end
    wait_until("the new workers do not have all streams") { subscribers == 8 }
  end

  # It reads nothing during the reload: whether its stream went or ended, it finds out later.
  def test_a_client_that_is_behind_misses_nothing
    serve
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 4096)
    socket.connect(Socket.sockaddr_in(served.uri.port, served.uri.host))
    client = listen(socket:)
    last = client.event["id"]
    40.times { publish("large") }
    reload
    publish("end")
    events = []
    until events.last&.fetch("data") == "end"
      if (event = client.event)
        events << event if event.key?("data")
        last = event.fetch("id", last)
      else
        client = listen("Last-Event-ID: #{last}\r\n")
      end
    end

    assert_equal [*[60_000] * 40, 3], events.map { |one| one["data"].size }
  end

  def test_where_the_application_wants_that_clients_come_back_with_a_new_request
    serve
    client = listen(path: "/stays")
    client.event
    publish(1)
    last = client.event
    reload

    assert_operator client.event["retry"].to_i, :<, 3000
    assert_nil client.event
    publish(2)

    assert_equal "2", listen("Last-Event-ID: #{last["id"]}\r\n", path: "/stays").event["data"]
  end

  def test_clients_over_tls_reconnect_and_miss_no_message
    certificate, key = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "-b", "tls://127.0.0.1:0", "--tls-cert", certificate,
               "--tls-key", key, "-b", "tcp://127.0.0.1:0"]
    @served = ServedProcess.new(command, folder: @folder, environment: { "RACK_ENV" => "production" },
                                         address: %r{(http://[^\s/]+:\d+)})
    tls_port = Integer(served.output[%r{https://[^\s/]+:(\d+)}, 1])
    dial = -> { OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", tls_port)).tap(&:connect) }
    client = listen(socket: dial.call)
    client.event
    publish(1)
    last = client.event
    reload

    assert_operator client.event["retry"].to_i, :<, 3000
    assert_nil client.event
    publish(2)
    again = listen("Last-Event-ID: #{last["id"]}\r\n", socket: dial.call)
    publish(3)

    assert_equal %w[1 2 3], ([last] + Array.new(2) { again.event }).map { |event| event["data"] }
  end

  def test_clients_over_http2_reconnect_and_miss_no_message
    serve
    first = listen_over_http2
    position = first.readpartial(200)[/^id: (.*)$/, 1]
    reload

    assert_operator read_until_end(first)[/^retry: (\d+)$/, 1].to_i, :<, 3000
    publish(1)
    again = listen_over_http2("last-event-id" => position)
    text = again.readpartial(200)
    text << again.readpartial(200) until text.include?("data: ")

    assert_match(/^data: 1$/, text)
  end

  def listen_over_http2(**)
    connection = H2WebSocketConnection.new(TCPSocket.new(served.uri.host, served.uri.port))
    (@clients ||= []) << connection
    connection.connect("/", method: "GET", protocol: nil, **)
  end

  def read_until_end(stream)
    text = +""
    loop { text << stream.readpartial(200) }
  rescue EOFError
    text
  end
end
