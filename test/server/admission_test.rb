# frozen_string_literal: true

# test: each selector

require "test_helper"
require_relative "server_helpers"
require "support/h2_client"

# How many requests run at once, and what happens to the others.
class AdmissionTest < Minitest::Test
  include ServerHelpers

  def setup
    @arrived = Thread::Queue.new
    @release = Thread::Queue.new
  end

  # An application whose requests wait until they are let go, but for those of /free.
  def held
    lambda do |env|
      path = env["PATH_INFO"]
      @arrived << path
      @release.pop unless path == "/free"
      [200, {}, [path]]
    end
  end

  def ask(socket, path) = socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")

  def next_arrived = @arrived.pop(timeout: PATIENCE)

  def body_of(socket) = read_answer(socket)&.split("\r\n\r\n", 2)&.last

  # Connections that have asked, each after the one before has been heard.
  def asking(*paths, from: nil)
    before = server.statistics
    sockets = paths.map { from ? connect_from(from) : connect }
    until_statistics { |found| found[:connections] == before[:connections] + sockets.size }
    sockets.zip(paths).each_with_index do |(socket, path), index|
      ask(socket, path)
      until_statistics { |found| heard(found) > heard(before) + index }
    end
    sockets
  end

  def heard(statistics) = statistics.values_at(:running, :waiting, :rejected_full).sum

  # Who has not been let go, or would linger, is not waited for.
  def stop
    if server
      @release.close
      @sockets&.each(&:close)
    end
    super
  end

  # One that is served at once, of this machine's own address. Returns its body.
  def serve_free
    socket = connect
    ask(socket, "/free")
    body_of(socket)
  end

  def connect = super.tap { |socket| (@sockets ||= []) << socket }

  def connect_from(address) = TCPSocket.new("127.0.0.1", port, address).tap { |socket| (@sockets ||= []) << socket }

  def test_requests_beyond_the_limit_wait_and_are_served_in_order
    serving(held, max_requests: 2) do
      sockets = asking("/1", "/2", "/3", "/4", "/5")

      assert_equal %w[/1 /2], [next_arrived, next_arrived]
      assert_equal [2, 2, 3], server.statistics.values_at(:limit, :running, :waiting)
      assert_equal :max_requests, server.statistics[:limited_by]
      %w[/3 /4 /5].each do |path|
        assert_equal 0, @arrived.size
        @release << true

        assert_equal path, next_arrived
      end
      2.times { @release << true }

      assert_equal %w[/1 /2 /3 /4 /5], sockets.map { |socket| body_of(socket) }
      assert_equal 0, server.statistics[:waiting]
    end
  end

  def test_addresses_take_turns_in_the_queue
    serving(held, max_requests: 1, trusted_proxies: []) do
      asking("/running")
      asking("/many1", "/many2", "/many3", from: "127.0.0.66")
      asking("/few1", "/few2")
      arrived = Array.new(6) { next_arrived.tap { @release << true } }

      assert_equal %w[/running /many1 /few1 /many2 /few2 /many3], arrived
    end
  end

  def test_streams_of_an_address_take_turns_with_other_addresses
    serving(held, max_requests: 1, trusted_proxies: []) do
      asking("/running")
      client = H2Client.new(connect_from("127.0.0.66"))
      client.send_preface
      [1, 3, 5].each { |stream| client.send_frame("HEADERS es+eh #{stream} get") }
      until_statistics { |found| found[:waiting] == 1 }
      asking("/few1", "/few2")
      arrived = Array.new(6) { next_arrived.tap { @release << true } }

      assert_equal %w[/running / /few1 /few2 / /], arrived
    end
  end

  # Its requests wait in turns of their connections, too.
  def test_an_address_that_pipelines_has_its_turns_beside_one_that_does_not
    served = []
    app = lambda do |env|
      served << env["PATH_INFO"]
      sleep 0.001
      [200, {}, []]
    end
    serving(app, max_requests: 1, trusted_proxies: []) do
      many = Array.new(32) { connect_from("127.0.0.66") }
      few = Array.new(4) { connect_from("127.0.0.67") }
      many.each { |socket| 20.times { ask(socket, "/many") } }
      few.map { |socket| Thread.new { ask(socket, "/few") && read_answer(socket) until served.count("/many") > 400 } }
         .each(&:join)
    end
    assert_operator served.count("/few"), :<, 500
  end

  def test_an_address_that_pipelines_has_its_turns_beside_one_that_does_so_on_more_connections
    served = []
    go = Thread::Queue.new
    app = lambda do |env|
      go.pop if env["PATH_INFO"] == "/first"
      served << env["PATH_INFO"]
      [200, {}, []]
    end
    serving(app, max_requests: 1, trusted_proxies: []) do
      asking("/first")
      many = Array.new(32) { connect_from("127.0.0.66") }
      few = Array.new(2) { connect_from("127.0.0.67") }
      [[many, "/many"], [few, "/few"]].each { |sockets, path| sockets.each { |one| 40.times { ask(one, path) } } }
      until_statistics { |found| found[:waiting] == 34 }
      go << true
      few.each { |socket| 40.times { read_answer(socket) } }
    end
    assert_operator served.first(240).count("/few"), :>, 60
  end

  def test_each_further_address_leaves_as_much_of_the_queue_as_it_has
    serving(held, max_requests: 1, queue_limit: 8, trusted_proxies: []) do
      *, refused = asking("/running", *Array.new(5, "/1"), from: "127.0.0.66")
      asking(*Array.new(3, "/2"), from: "127.0.0.67")
      asking(*Array.new(2, "/3"), from: "127.0.0.68")

      assert_match(/\AHTTP.1.1 503 /, read_answer(refused))
      assert_equal [1, 7, 3], server.statistics.values_at(:running, :waiting, :rejected_full)
      asking("/4", from: "127.0.0.69")

      assert_equal [1, 8, 3], server.statistics.values_at(:running, :waiting, :rejected_full)
    end
  end

  def test_an_address_leaves_a_quarter_of_the_limit_to_others
    serving(held, max_requests: 4, trusted_proxies: []) do
      asking("/1", "/2", "/3", "/4", "/5", from: "127.0.0.66")
      serve_free

      assert_equal %w[/1 /2 /3 /free], Array.new(4) { next_arrived }
      assert_equal [3, 2], server.statistics.values_at(:running, :waiting)
      2.times do |number|
        @release << true

        assert_equal "/#{number + 4}", next_arrived
      end
    end
  end

  def test_an_address_behind_a_proxy_header_leaves_a_quarter_of_the_limit_to_others
    serving(held, max_requests: 4, bind: ["127.0.0.1:0?proxy_protocol=on"]) do
      [1, 2, 3, 4, 9].each_with_index do |path, index|
        from = "PROXY TCP4 192.0.2.#{path} 192.0.2.8 1 2\r\n"
        connect.write("#{from.sub(/2\.[1-4] /, "2.1 ")}GET /#{path} HTTP/1.1\r\nHost: a\r\n\r\n")
        until_statistics { |found| heard(found) > index }
      end

      assert_equal %w[/1 /2 /3 /9], Array.new(4) { next_arrived }
      assert_equal [4, 1], server.statistics.values_at(:running, :waiting)
    end
  end

  def test_an_address_leaves_a_quarter_of_the_limit_to_others_over_http2
    serving(held, max_requests: 4, trusted_proxies: []) do
      client = H2Client.new(connect_from("127.0.0.66"))
      client.send_preface
      [1, 3, 5, 7, 9].each { |stream| client.send_frame("HEADERS es+eh #{stream} get") }
      3.times { next_arrived }
      serve_free

      assert_equal ["/free", 0], [next_arrived, @arrived.size]
      2.times { @release << true }

      assert_equal %w[/ /], [next_arrived, next_arrived]
    end
  end

  # One that waits for its client, which reads slowly, is like any other.
  def test_slow_readers_of_an_address_leave_a_quarter_of_the_limit_to_others
    stream = proc { |out| 100.times { out.write("x" * 65_536) } && out.close }
    app = ->(env) { [200, {}, env["PATH_INFO"] == "/free" ? ["free"] : stream] }
    serving(app, max_requests: 2, trusted_proxies: []) do
      ask(connect_from("127.0.0.66"), "/slow")
      until_statistics { |found| found[:running] == 1 }
      ask(connect_from("127.0.0.66"), "/slow")
      until_statistics { |found| found[:waiting] == 1 }

      assert_equal "free", serve_free
    end
  end

  def test_the_only_request_of_a_limit_of_one_is_any_addresses
    serving(held, max_requests: 1, trusted_proxies: []) do
      asking("/1", "/2", from: "127.0.0.66")
      2.times { @release << true }

      assert_equal %w[/1 /2], [next_arrived, next_arrived]
    end
  end

  # While they waited for their address, others had their turns.
  def test_requests_beyond_the_share_of_an_address_take_turns_with_others_afterwards
    serving(held, max_requests: 4, trusted_proxies: []) do
      asking(*Array.new(10) { |i| "/many#{i + 1}" }, from: "127.0.0.66")
      serve_free
      asking("/few1", "/few2", "/few3")
      5.times { next_arrived }
      arrived = Array.new(4) { @release << true and next_arrived }

      assert_equal %w[/few2 /many4 /few3 /many5], arrived
    end
  end

  def test_a_waiting_request_uses_no_fiber
    serving(held, max_requests: 1) do
      asking("/1")
      before = server.statistics[:fibers]
      asking(*Array.new(50) { |i| "/#{i}" })

      assert_equal 50, until_statistics { |found| found[:waiting] == 50 }[:waiting]
      assert_operator server.statistics[:fibers], :<=, before + 1
      51.times { @release << true }
      until_statistics { |found| found[:waiting] == 0 && found[:running] == 0 }
    end
  end

  def test_a_full_queue_is_refused_at_once
    serving(held, max_requests: 1, queue_limit: 2) do
      sockets = asking("/1", "/2", "/3", "/4")
      head, body = read_all(sockets.last).split("\r\n\r\n")

      assert_operator head, :start_with?, "HTTP/1.1 503 Service Unavailable\r\n"
      assert_includes head, "retry-after: 1\r\n"
      assert_includes head, "connection: close"
      assert_equal "503 Service Unavailable: the server is busy, and too many requests are already waiting.\n", body
      assert_equal [1, 0, 2], server.statistics.values_at(:rejected_full, :rejected_late, :waiting)
      3.times { @release << true }

      assert_equal %w[/1 /2 /3], sockets.first(3).map { |socket| body_of(socket) }
      ask(sockets.first, "/free")

      assert_equal "/free", body_of(sockets.first), "who was served goes on"
    end
  end

  def test_requests_that_arrive_together_while_the_loop_is_busy_do_not_exceed_the_queue
    busy = true
    app = lambda do |env|
      Thread.pass while busy && env["PATH_INFO"] == "/busy"
      held.call(env)
    end
    serving(app, max_requests: 2, queue_limit: 3, protect: []) do
      first, *others = Array.new(11) { connect }
      until_statistics { |found| found[:connections] == 11 }
      ask(first, "/busy")
      until_statistics { |found| found[:running] == 1 }
      others.each { |socket| ask(socket, "/") }
      busy = false
      until_statistics { |found| heard(found) == 11 }

      assert_equal [2, 3, 6], server.statistics.values_at(:running, :waiting, :rejected_full)
    end
  end

  def test_a_request_that_waits_too_long_is_rejected
    serving(held, max_requests: 1, queue_timeout: 0.05) do
      first, second, head, upload = Array.new(4) { connect }
      ask(first, "/1")
      next_arrived
      ask(second, "/2")
      head.write("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
      upload.write("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
      answers = [second, head, upload].map { |socket| read_all(socket) }

      answers.each { |answer| assert_match(/\AHTTP.1.1 503 .*^retry-after: 1\r$/m, answer) }
      assert_operator answers[0], :end_with?, "the server is busy, and the request waited for 0.05 s.\n"
      assert_operator answers[1], :end_with?, "\r\n\r\n"
      assert_equal [3, 0], server.statistics.values_at(:rejected_late, :waiting)
      @release << true

      assert_equal "/1", body_of(first), "one that runs may take its time"
      ask(first, "/free")

      assert_equal "/free", body_of(first)
    end
  end

  def test_a_new_connection_is_answered_while_the_queue_is_full
    serving(held, max_requests: 1, queue_limit: 8) do
      asking("/1", *Array.new(8, "/w"))
      late = connect
      ask(late, "/late")

      assert_match(/\AHTTP.1.1 503 .*too many requests are already waiting/m, read_all(late))
      assert server.statistics[:accepting]
      9.times { @release << true }
    end
  end

  # Closed with a reset.
  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
  end

  def test_a_queued_request_whose_client_resets_its_connection_is_dropped
    serving(held, max_requests: 1) do
      sockets = asking("/1", "/2", "/3")
      reset(sockets.delete_at(1))

      assert_equal 1, until_statistics { |found| found[:waiting] == 1 }[:clients_gone]
      2.times { @release << true }

      assert_equal %w[/1 /3], sockets.map { |socket| body_of(socket) }
      assert_equal %w[/1 /3], Array.new(2) { next_arrived }
    end
  end

  def test_clients_that_have_left_the_queue_are_counted_when_the_server_has_ended
    serving(held, max_requests: 1) do
      sockets = asking("/1", "/2")
      reset(sockets.last)
      until_statistics { |found| found[:clients_gone] == 1 }
      @release << true
      body_of(sockets.first)
    end

    assert_equal 1, @log.gone
  end

  # It may only have ended its side, and read the response.
  def test_a_request_that_was_queued_for_a_second_is_dropped_when_its_client_has_ended_its_side
    serving(held, max_requests: 1) do
      sockets = asking("/1", "/2", "/3")
      sockets[1].close_write
      began = now
      sleep 0.01 until now - began > 1.1
      2.times { @release << true }

      assert_match(/\AHTTP.1.1 503 .*the client has ended its side/m, read_all(sockets[1]))
      assert_equal %w[/1 /3], sockets.values_at(0, 2).map { |socket| body_of(socket) }
      assert_equal 1, server.statistics[:clients_gone]
      assert_equal %w[/1 /3], Array.new(2) { next_arrived }
    end
  end

  def test_a_request_that_is_served_soon_is_answered_when_its_client_has_ended_its_side
    serving(held, max_requests: 1, queue_timeout: 600) do
      sockets = asking("/1", "/2")
      sockets[1].close_write
      2.times { @release << true }

      assert_equal %w[/1 /2], sockets.map { |socket| body_of(socket) }
    end
  end

  def test_queued_streams_of_a_client_that_has_ended_its_side_are_dropped
    serving(held, max_requests: 1, lint: false) do
      asking("/1")
      client = H2Client.new(connect)
      client.send_preface
      [1, 3].each { |stream| client.send_frame("HEADERS es+eh #{stream} get") }
      until_statistics { |found| found[:waiting] == 1 }
      client.close_write
      began = now
      sleep 0.01 until now - began > 1.1
      @release << true
      frames = read_frames(client)

      assert_equal [1, 3], frames.select { |frame| frame.type == "HEADERS" }.map(&:stream)
      assert_equal 2, server.statistics[:clients_gone]
      assert_equal ["/1"], [next_arrived, *(@arrived.pop until @arrived.empty?)]
    end
  end

  def read_frames(client)
    frames = []
    while (frame = client.read_frame)
      frames << frame
    end
    frames
  ensure
    client.close
  end

  def test_failed_requests_release_their_slot
    failing = lambda do |env|
      held.call(env)
      case env["PATH_INFO"]
      when "/raise" then raise "no"
      when "/exit" then raise NotImplementedError
      when "/hijack" then env["rack.hijack"].call.close
      end
      [200, {}, [env["PATH_INFO"]]]
    end
    serving(failing, lint: false, max_requests: 1) do
      paths = %w[/1 /raise /exit /hijack /gone /2] * 5
      sockets = asking(*paths)
      sockets.zip(paths).each { |socket, path| socket.close if path == "/gone" }
      paths.size.times { @release << true }
      expected = { "/1" => "200", "/2" => "200", "/raise" => "500", "/exit" => "500", "/hijack" => nil }
      answered = sockets.zip(paths).reject { |_, path| path == "/gone" }

      answered.each { |socket, path| assert_equal [expected[path]], [read_answer(socket)&.slice(9, 3)], path }
      until_statistics { |found| found[:running] == 0 && found[:waiting] == 0 }
    end
  end

  def test_many_that_pipeline_are_all_answered
    random = Random.new(Minitest.seed)
    app = lambda do |env|
      sleep(0.001) if random.rand(4) == 0
      [200, {}, [env["PATH_INFO"]]]
    end
    [1, 2, 5].each do |limit|
      serving(app, max_requests: limit, access_log: false) do
        sockets = Array.new(10) { connect }
        sockets.each { |socket| 40.times { |index| ask(socket, "/#{index}") } }
        answers = sockets.map { |socket| Array.new(40) { body_of(socket) } }

        assert_equal [Array.new(40) { |index| "/#{index}" }] * 10, answers
        assert_equal [0, 0], server.statistics.values_at(:waiting, :rejected_full)
      end
    end
  end

  def test_a_request_counts_until_its_body_is_closed
    app = lambda do |env|
      body = Object.new
      body.define_singleton_method(:each) { |&block| block.call(env["PATH_INFO"]) }
      finish = -> { @arrived << "closing" && @release.pop }
      body.define_singleton_method(:close) { finish.call }
      @arrived << env["PATH_INFO"]
      [200, { "content-length" => "2" }, body]
    end
    serving(app, lint: false, max_requests: 1) do
      first = connect
      ask(first, "/1")

      assert_equal %w[/1 closing], [next_arrived, next_arrived]
      assert_equal "/1", body_of(first)
      ask(first, "/2")
      until_statistics { |found| found[:waiting] == 1 }
      @release << true

      assert_equal %w[/2 closing], [next_arrived, next_arrived]
      assert_equal "/2", body_of(first)
      @release << true
    end
  end

  def test_requests_that_wait_are_answered_when_the_server_stops_in_order
    start(held, max_requests: 1)
    sockets = asking("/1", "/2", "/3")
    server.stop
    3.times { @release << true }

    sockets.zip(%w[/1 /2 /3]).each { |socket, path| assert_operator read_all(socket), :end_with?, path }
    assert wait_for_end, "every request was answered"
  end

  def test_requests_that_wait_when_the_server_stops_are_rejected
    start(held, max_requests: 1, stop_timeout: 0.1)
    sockets = asking("/1", "/2", "/3")
    server.stop

    refute wait_for_end
    sockets.drop(1).each { |socket| assert_match(/\AHTTP.1.1 503 .*the server is stopping/m, read_all(socket)) }
    assert_match(/stopping (after \S+ s )?with 3 requests unanswered/, output.string)
    assert_equal 1, @arrived.size
  end

  def test_a_limit_is_logged_once_and_not_for_each_request
    serving(held, max_requests: 1, queue_limit: 2, access_log: false) do
      asking("/1", "/2", "/3", *Array.new(10, "/4"))
      until_statistics { output.string.lines.grep(/busy:/).size == 2 }
      3.times { @release << true }
    end
    told = output.string.lines.grep(/busy:/)

    refute_match(/answered with 503: the server is busy/, output.string)
    assert_match(/busy: 2 requests wait, because at most 1 request runs at once \(max_requests\)/, told[0])
    assert_match(/busy: \d+ requests? got 503\. Since the start, \d+ got 503 .* full \(queue_limit\), and 0 because/,
                 told[1])
  end
end
