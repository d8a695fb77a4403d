# frozen_string_literal: true

# test: each selector

require "test_helper"
require_relative "support/client_case"
require_relative "support/h2_scripted_server"

# HTTP/2 on the client: connections that are shared, and what happens when they end.
class ClientHTTP2Test < ClientCase
  def serve_h2(**, &script)
    server = H2ScriptedServer.new(**, &script)
    (@servers ||= []) << server
    server
  end

  def client(server, **) = Client.new(server.url, http2: :prior_knowledge, proxy: nil, **)

  # Answers each request at once.
  def answering(**)
    serve_h2(**) do |peer, _|
      while (request = peer.read_request)
        peer.answer(request.stream)
      end
    end
  end

  def test_an_answer_has_its_status_its_fields_and_its_body
    server = serve_h2 { |peer, _| peer.answer(peer.read_request.stream, "twelve bytes", "x-one=1 x-one=2") }
    response = client(server).get("/")

    assert_equal [200, "text/plain", "1, 2", "twelve bytes"],
                 [response.status, response["Content-Type"], response["x-one"], response.body]
    assert_equal Encoding::UTF_8, client(answering).get("/").body.encoding
  end

  def test_loops_and_threads_share_one_connection
    server = answering
    http = client(server)
    threads = Array.new(4) do |n|
      Thread.new do
        n.even? ? Array.new(30) { http.get("/").body } : in_loop { Heddle.map(1..30) { http.get("/").body } }
      end
    end

    assert_equal ["hello"] * 120, threads.flat_map(&:value)
    assert_equal 1, server.connections
    assert_equal({ open: 1, idle: 1, waiting: 0, requests: 120, opened: 1 },
                 Client.statistics.fetch(server.url).slice(:open, :idle, :waiting, :requests, :opened))
  end

  def test_answers_may_come_in_any_order
    server = serve_h2 do |peer, _|
      streams = Array.new(20) { peer.read_request.stream }
      streams.reverse_each { |stream| peer.answer(stream, "stream #{stream}") }
      peer.read_to_end
    end
    http = client(server)

    bodies = in_loop { Heddle.map(1..20) { http.get("/").body } }

    assert_equal (0...20).map { |n| "stream #{(2 * n) + 1}" }.sort, bodies.sort
  end

  def test_no_more_requests_at_a_time_than_the_server_takes
    most = 0
    server = serve_h2(settings: "3:2") do |peer, _|
      first = peer.read_request # so that the SETTINGS have come before the others
      peer.answer(first.stream)
      open = []
      loop do
        frame = peer.read_frame or break
        open << frame.stream if frame.type == "HEADERS"
        most = [most, open.size].max
        peer.answer(open.shift) while open.any? && (open.size == 2 || !peer.socket.wait_readable(1))
      end
    end
    http = client(server)
    http.get("/")

    in_loop { assert_equal ["hello"] * 20, Heddle.map(1..20) { http.get("/").body } }
    assert_equal 2, most
  end

  def test_a_request_that_waits_for_its_turn_has_a_limit
    server = serve_h2(settings: "3:1") do |peer, _|
      peer.answer(peer.read_request.stream)
      peer.read_to_end
    end
    http = client(server, timeout: { pool: 0.05 })
    http.get("/")

    in_loop do
      Heddle.scope do |scope|
        scope.async { http.get("/") }
        Heddle.async { assert_raises(Client::PoolTimeoutError) { http.get("/") } }.value
        Heddle.async { assert_raises(Client::TotalTimeoutError) { http.get("/", timeout: 0.01) } }.value
        scope.cancel
      end
    end
  end

  def test_a_request_that_waits_for_anothers_connecting_says_so
    silent = TCPServer.new("127.0.0.1", 0)
    http = Client.new("https://127.0.0.1:#{silent.addr[1]}", proxy: nil)
    in_loop do
      Heddle.scope do |scope|
        scope.async { http.get("/", timeout: { tls: 60 }) }
        Fiber.scheduler.yield
        total = Heddle.async { assert_raises(Client::TotalTimeoutError) { http.get("/", timeout: 0.01) } }
        limits = { connect: 0.01, tls: 0.01 }
        own = Heddle.async { assert_raises(Client::ConnectTimeoutError) { http.get("/", timeout: limits) } }
        assert_includes total.value.message, "another request was still opening the connection"
        assert_includes own.value.message, "another request was still opening the connection"
        scope.cancel
      end
    end
  ensure
    silent.close
  end

  def test_a_connection_that_the_client_closes_is_no_violation_of_the_server
    server = serve_h2 { |peer, _| peer.read_to_end }
    http = client(server)
    in_loop do
      tasks = Array.new(2) { Heddle.async { assert_raises(Client::ConnectionLostError) { http.get("/") } } }
      shared = nil
      until_true do
        origin = Client::OriginRegistry.origins.find { |one| one.to_s == server.url }
        sharing = origin&.instance_variable_get(:@sharing)
        shared = sharing&.instance_variable_get(:@connection)
        shared&.uses == 2
      end
      shared.close # one request reads for both, and loses its socket
      assert_includes tasks.map { |task| task.value.message }.join, "the client closed the connection"
    end
  end

  # A task that sends one request after the other has each time room that it has just made itself.
  def test_requests_that_wait_come_before_later_ones
    server = answering(settings: "3:1")
    http = client(server, timeout: { pool: 60 })
    http.get("/")
    in_loop do
      done = false
      later = 0
      others = Heddle.async do
        later += 1 while !done && later < 500 && http.get("/")
      end
      Heddle.map(1..3) { http.get("/") }
      done = true
      others.value
      assert_operator later, :<, 20
    end
  end

  def test_a_request_that_is_cancelled_when_its_turn_comes_passes_it_on
    gate = Thread::Queue.new
    server = serve_h2(settings: "3:1") do |peer, _|
      peer.answer(peer.read_request.stream)
      first = peer.read_request
      gate.pop
      while first
        peer.answer(first.stream)
        first = peer.read_request
      end
    end
    http = client(server)
    http.get("/")
    in_loop do
      first = Heddle.async { http.get("/").body }
      cancelled, last = Array.new(2) { Heddle.async { http.get("/").body } }
      Fiber.scheduler.yield until Client.statistics.fetch(server.url)[:waiting] == 2
      gate.push(true)
      first.value
      cancelled.cancel

      assert_equal "hello", last.value
    end
    assert_equal 0, Client.statistics.fetch(server.url)[:waiting]
  end

  def test_interim_answers_are_passed_over_and_trailers_kept
    server = serve_h2 do |peer, _|
      stream = peer.read_request.stream
      peer.send_frame("HEADERS eh #{stream} :status=103 link=</x>")
      peer.send_frame("HEADERS eh #{stream} :status=200")
      peer.send_frame("DATA - #{stream} \"hello\"")
      peer.send_frame("HEADERS es+eh #{stream} digest=x checked=yes")
      peer.read_frame
    end

    client(server).stream(:get, "/") do |response|
      assert_equal "hello", response.body
      assert_equal({ "digest" => "x", "checked" => "yes" }, response.trailers)
    end
  end

  def test_a_cancelled_request_is_reset_and_others_continue
    codes = Thread::Queue.new
    both_came = false
    server = serve_h2 do |peer, _|
      slow = peer.read_request.stream
      other = peer.read_request.stream
      both_came = true
      reset = peer.read_until("RST_STREAM")
      codes << [reset.stream == slow, reset.error]
      peer.answer(other)
      peer.read_frame
    end
    http = client(server)

    in_loop do
      Heddle.scope do |scope|
        slow = scope.async { http.get("/slow") }
        other = scope.async { http.get("/other").body }
        until_true { both_came }
        slow.cancel

        assert_equal "hello", other.value
      end
    end
    assert_equal [true, "CANCEL"], codes.pop
  end

  def test_connection_is_released_when_its_request_is_interrupted_at_the_lock
    server = serve_h2 do |peer, _|
      2.times { peer.answer(peer.read_request.stream) }
      peer.read_frame
    end
    interrupt_during_release(client(server), server)

    assert_equal [1, 1], Client.statistics.fetch(server.url).values_at(:open, :idle)
  end

  def test_response_to_a_request_that_was_cancelled_long_ago_is_ignored
    cancelled = nil
    server = serve_h2 do |peer, _|
      cancelled = peer.read_request.stream
      100.times { peer.answer(peer.read_request.stream) }
      peer.answer(cancelled)
      peer.answer(peer.read_request.stream)
      peer.read_frame
    end
    http = client(server)
    in_loop do
      slow = Heddle.async { http.get("/slow") }
      until_true { cancelled }
      slow.cancel
      101.times { assert_equal "hello", http.get("/").body }
    end
    assert_equal 1, server.connections
  end

  def test_a_body_that_is_left_unread_is_reset_and_the_connection_continues
    resets = Thread::Queue.new
    server = serve_h2 do |peer, _|
      stream = peer.read_request.stream
      peer.send_frame("HEADERS eh #{stream} :status=200")
      peer.send_frame("DATA - #{stream} \"half\"")
      resets << peer.read_until("RST_STREAM").error
      peer.answer(peer.read_request.stream)
      peer.read_frame
    end
    http = client(server)

    assert_equal "half", http.stream(:get, "/") { |response| response.each.first }
    assert_equal "hello", http.get("/").body
    assert_equal "CANCEL", resets.pop
    assert_equal 1, server.connections
  end

  # -- windows

  def test_the_server_may_send_as_much_as_is_read
    size = 3_000_000
    sent = 0
    server = serve_h2 do |peer, _|
      stream = peer.read_request.stream
      peer.send_frame("HEADERS eh #{stream} :status=200")
      window = 512 << 10
      while sent < size
        while window < 16_384
          update = peer.read_until("WINDOW_UPDATE") or break
          window += update.payload.unpack1("N") if update.stream == stream
        end
        peer.send_frame("DATA - #{stream} 61*16384")
        window -= 16_384
        sent += 16_384
      end
      peer.send_frame("DATA es #{stream}")
      peer.read_frame
    end

    in_loop do
      body = client(server).get("/").body

      assert_equal [sent, "a"], [body.bytesize, body.squeeze]
    end
    assert_operator sent, :>=, size
  end

  def test_a_body_goes_out_as_the_servers_window_opens
    received = Thread::Queue.new
    server = serve_h2(settings: "4:1000") do |peer, _|
      while (request = peer.read_request)
        received << read_body(peer, request.stream)
        peer.answer(request.stream)
      end
    end
    body = Random.new(1).bytes(200_000)
    in_loop do
      assert_equal 200, client(server).post("/", body: StringIO.new(body)).status
      assert_equal body, received.pop
      assert_equal 200, client(server).post("/", body: body.each_char.each_slice(9_999).map(&:join)).status
      assert_equal body, received.pop
    end
  end

  # Servers in Go do so, where the handler reads through a buffer of 4 KiB.
  def test_the_server_may_open_both_windows_for_each_4_kib
    size = nil
    server = serve_h2(settings: "4:1048576") do |peer, _|
      peer.send_frame("WINDOW_UPDATE - 0 #1048576")
      stream = peer.read_request.stream
      size = read_body(peer, stream, 4_096).bytesize
      peer.answer(stream)
      peer.read_to_end
    end

    in_loop { assert_equal 200, client(server).post("/", body: "x" * 1_000_000).status }
    assert_equal 1_000_000, size
  end

  # Opens the windows by what has come, at most `step` bytes at a time.
  def read_body(peer, stream, step = 16_384)
    body = +""
    loop do
      frame = peer.read_until("DATA")
      body << frame.payload
      return body if frame.end_stream?

      0.step(frame.payload.bytesize - 1, step) do |at|
        size = [frame.payload.bytesize - at, step].min
        [stream, 0].each { |id| peer.send_frame("WINDOW_UPDATE - #{id} ##{size}") }
      end
    end
  end

  def test_an_early_response_is_returned_before_the_body_is_sent
    server = serve_h2(settings: "4:1000") do |peer, _|
      stream = peer.read_request.stream
      peer.send_frame("HEADERS es+eh #{stream} :status=413")
      peer.send_frame("RST_STREAM - #{stream} #0")
      peer.read_to_end
    end

    in_loop { assert_equal 413, client(server).post("/", body: "x" * 100_000).status }
  end

  def test_a_server_that_opens_no_window_ends_with_the_write_limit
    server = serve_h2(settings: "4:0") { |peer, _| peer.read_to_end }

    assert_raises(Client::WriteTimeoutError) { client(server, timeout: { write: 0.1 }).post("/", body: "x" * 300_000) }
  end

  # -- what may be sent again

  def test_a_refused_request_is_sent_again_a_post_too
    seen = []
    server = serve_h2 do |peer, _|
      while (request = peer.read_request)
        seen << request.stream
        next peer.send_frame("RST_STREAM - #{request.stream} #7") if seen.size == 1

        peer.answer(request.stream)
      end
    end

    assert_equal "hello", client(server).post("/", body: "once").body
    assert_equal [1, 3], seen
  end

  def test_a_request_whose_streams_are_always_refused_raises_connection_lost
    server = serve_h2 { |peer, _| peer.reset_all(7) }

    error = assert_raises(Client::ConnectionLostError) { client(server).post("/", body: "x") }
    refute_kind_of Client::OutcomeUnknownError, error
  end

  def test_requests_above_the_last_stream_of_a_goaway_are_sent_again_elsewhere
    server = serve_h2 do |peer, number|
      if number == 1
        streams = Array.new(2) { peer.read_request.stream }
        peer.send_frame("GOAWAY - 0 #1 #0")
        peer.answer(streams.first, "first")
        peer.read_to_end
      else
        peer.answer(peer.read_request.stream, "second")
        peer.read_frame
      end
    end
    http = client(server)

    in_loop { assert_equal %w[first second], Heddle.map(1..2) { http.post("/", body: "").body }.sort }
    assert_equal 2, server.connections
  end

  def test_after_a_goaway_new_requests_go_elsewhere
    server = serve_h2 do |peer, _|
      stream = peer.read_request.stream
      peer.send_frame("HEADERS eh #{stream} :status=200")
      peer.send_frame("GOAWAY - 0 ##{(2**31) - 1} #0")
      peer.send_frame("DATA es #{stream} \"hello\"")
      peer.read_to_end
    end
    http = client(server)

    3.times { assert_equal "hello", http.get("/").body }
    assert_equal 3, server.connections
  end

  def test_a_get_whose_connection_was_used_before_is_sent_again_and_a_post_is_not
    server = serve_h2 do |peer, _|
      peer.answer(peer.read_request.stream)
      peer.read_request # and the connection ends
    end
    http = client(server)
    http.get("/")

    assert_equal "hello", http.get("/").body
    assert_equal 2, server.connections
    assert_raises(Client::OutcomeUnknownError) { http.post("/", body: "x") }
    assert_equal 2, server.connections
  end

  def test_a_reset_before_the_response_is_not_a_response
    server = serve_h2 { |peer, _| peer.reset_all(2) }
    http = client(server)

    assert_raises(Client::OutcomeUnknownError) { http.post("/", body: "x") }
    error = assert_raises(Client::ConnectionLostError) { http.get("/") }
    assert_match(/INTERNAL_ERROR/, error.message)
    assert_equal 1, server.connections
  end

  # -- connections that nobody uses

  def test_a_ping_to_an_idle_connection_is_answered
    answers = Thread::Queue.new
    server = serve_h2 do |peer, _|
      peer.answer(peer.read_request.stream)
      peer.send_frame("PING - 0 \"12345678\"")
      answers << peer.read_until("PING").payload
      peer.read_frame
    end
    client(server).get("/")
    until_true { Client::OriginRegistry.origins.each(&:close_idle) && !answers.empty? }

    assert_equal "12345678", answers.pop
  end

  def test_an_idle_connection_closes_when_its_time_is_over_and_says_so
    goodbye = Thread::Queue.new
    server = serve_h2 do |peer, _|
      peer.answer(peer.read_request.stream)
      goodbye << peer.read_until("GOAWAY")&.error
    end
    http = client(server, idle_timeout: 0.01)
    http.get("/")

    assert_equal "NO_ERROR", goodbye.pop
    until_true { Client.statistics.fetch(server.url)[:open].zero? }
  end

  # The one who reads waits for input, and what another one flushes makes room without any.
  def test_a_flush_returns_the_waiters_for_freed_room
    server = serve_h2(settings: "000400100000") do |peer, _|
      peer.read_request
      peer.send_frame("WINDOW_UPDATE - 0 #1048576")
      peer.send_frame("HEADERS eh 1 #{H2ScriptedServer::Peer::HEAD}")
      peer.read_to_end
    end
    session = Heddle::HTTP::H2::ClientConnection.new(Heddle::Net.connect("127.0.0.1:#{server.port}"))
    stream = session.open("POST", "http", "a", "/", [], false)
    session.receive(nil) until stream.status
    stream.waiter = queue = Thread::Queue.new

    assert_operator stream.write("x" * 200_000, 0), :<, 200_000
    assert_nil session.waiters
    assert session.flush

    assert_equal [[queue], [queue], nil], [session.waiters, session.attend, session.waiters]
    session.close
  end

  def test_a_child_process_opens_a_connection_of_its_own
    server = answering
    http = client(server)
    http.get("/")
    from_child, to_parent = IO.pipe
    pid = fork do
      to_parent.write(http.get("/").body)
      exit!(0)
    end
    Process.wait(pid)
    to_parent.close

    assert_equal "hello", from_child.read
    assert_equal "hello", http.get("/").body
    assert_equal 2, server.connections
  end

  def test_http2_client_works_under_another_fiber_scheduler
    http = client(answering)

    assert_equal "hello", scheduled { http.get("/").body }
  end
end
