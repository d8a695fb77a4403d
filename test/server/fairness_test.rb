# frozen_string_literal: true

# test: long

require "test_helper"
require_relative "server_helpers"
require "support/h2_client"
require "tempfile"

# Every connection gets its turn, and so does everything else in the loop.
class FairnessTest < Minitest::Test
  include ServerHelpers

  # With the delays of an ordinary client: the order in which their bytes arrive is what these tests are about.
  def connect = TCPSocket.new("127.0.0.1", port).tap { |socket| (@sockets ||= []) << socket }

  # At its end the server waits for clients that might send more (`linger_timeout`): here there are none.
  def serving(...)
    super do
      yield
      @sockets.each(&:close)
    end
  end

  # Blocks the loop until the queue gets something.
  def hold_up(queue) = Fiber.blocking { queue.pop }

  def compute(seconds)
    till = now + seconds
    nil while now < till
  end

  # The paths in the order in which a loop answers them that was blocked while the block sent all of them; with a tick
  # wherever a timer had its turn. Without preemption: a request that is preempted ends out of turn.
  def order_of(milliseconds: 5, ticking: false, **options)
    order = []
    over = false
    held = Thread::Queue.new
    go = Thread::Queue.new
    app = lambda do |env|
      if env["PATH_INFO"] == "/hold"
        Fiber.schedule { sleep(0.001) && order << "tick" until over } if ticking
        held << true
        hold_up(go)
      else
        compute(milliseconds / 1_000.0)
        order << env["PATH_INFO"]
      end
      [200, {}, ["x"]]
    end
    serving(app, lint: false, access_log: false, protect: [], **options) do
      holder = connect
      holder.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      sockets = yield
      go << true
      sockets.each { |socket, count| count.times { read_answer(socket) } }
      over = true
    end
    order
  end

  def many_streams(count)
    client = H2Client.new(bytes = StringIO.new(+"".b))
    client.send_preface
    fields = ":method=GET :scheme=http :authority=a :path=/many"
    count.times { |i| client.send_frame("HEADERS es+eh #{(2 * i) + 1} #{fields}") }
    bytes.string
  end

  # Eight requests of 500 fields each, which are too many, and a last one.
  def many_fields
    client = H2Client.new(bytes = StringIO.new(+"".b))
    8.times { |i| client.send_frame("HEADERS es+eh #{(2 * i) + 1} get 90*500") }
    client.send_frame("HEADERS es+eh 17 :method=GET :scheme=http :authority=a :path=/many")
    bytes.string
  end

  def request_with_fields(count)
    client = H2Client.new(bytes = StringIO.new(+"".b))
    client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=/many 90*#{count}")
    bytes.string
  end

  # All windows are as large as they can be.
  def request_large_over_http2
    client = H2Client.new(bytes = StringIO.new(+"".b))
    client.send_preface
    client.send_frame("SETTINGS - 0 4:2147483647")
    client.send_frame("WINDOW_UPDATE - 0 #2147400000")
    client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=/large")
    bytes.string
  end

  def request(path) = "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"

  # They ask ahead, so that it is the server alone that says whose turn it is.
  def test_busy_connections_are_served_equally_often
    skip "requests that are preempted end out of turn (HEDDLE_TEST_PROTECT)" if Heddle.enabled.include?(:preempt)

    order = order_of(milliseconds: 11) do
      Array.new(8) do |index|
        socket = connect
        socket.write(request("/#{index}") * 20)
        [socket, 20]
      end
    end
    counts = order.first(80).tally.values

    assert_equal [8, 160], [counts.size, order.size]
    assert_operator counts.max - counts.min, :<=, 1, counts.inspect
  end

  [{}, { max_requests: 1 }, { max_requests: 3 }].each do |options|
    define_method(:"test_one_that_pipelines_does_not_starve_others_#{options.values.first || "without_limit"}") do
      order = order_of(**options) do
        many = connect
        many.write(request("/many") * 60)
        others = Array.new(20) { connect }
        others.each { |socket| socket.write(request("/other")) }
        [[many, 60], *others.map { |socket| [socket, 1] }]
      end

      assert_equal [60, 20], order.tally.values_at("/many", "/other")
      assert_operator order[0..order.rindex("/other")].count("/many"), :<=, 3
    end
  end

  # All input is here when the loop continues, which a Unix socket promises: more than a fiber reads in a turn.
  def test_an_upload_that_is_streamed_does_not_delay_others
    begun, go = Array.new(2) { Thread::Queue.new }
    size = 0
    app = lambda do |env|
      next [200, {}, [size.to_s]] unless env["PATH_INFO"] == "/upload"

      begun << true
      hold_up(go)
      while (part = env["rack.input"].read(65_536))
        size += part.bytesize
      end
      [200, {}, []]
    end
    Dir.mktmpdir do |folder|
      bind = ["127.0.0.1:0", "unix:#{folder}/server"]
      serving(app, lint: false, bind:, stream_bodies: ["/upload"]) do
        upload, other = @sockets = Array.new(2) { UNIXSocket.new("#{folder}/server") }
        upload.setsockopt(:SOCKET, :SNDBUF, 212_992) # the system doubles it
        upload.write("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n")
        begun.pop
        sent = 0
        while (written = upload.write_nonblock("x" * 16_384, exception: false)).is_a?(Integer)
          sent += written
        end
        other.write("GET /size HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        go << true

        assert_operator sent, :>, 270_000
        assert_operator other.read[/\d+\z/].to_i, :<=, 262_144
      end
    end
  end

  # Its blocks are decoded over several ticks: another client's request, which came later, is read in the first of them.
  def test_a_client_with_many_header_fields_does_not_delay_others
    order = []
    held = Thread::Queue.new
    go = Thread::Queue.new
    app = lambda do |env|
      order << env["PATH_INFO"] unless %w[/hold /first].include?(env["PATH_INFO"])
      env["PATH_INFO"] == "/hold" && (held << true) && hold_up(go)
      [200, {}, ["x"]]
    end
    serving(app, lint: false, access_log: false, protect: []) do
      many = H2Client.new(connect)
      many.send_preface
      2.times { many.read_frame } # it is known as one of HTTP/2
      other = connect
      other.write(request("/first")) && read_answer(other)
      holder = connect
      holder.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      many.send_bytes(many_fields)
      other.write(request("/other"))
      go << true
      read_answer(other)
      until_statistics { order.size == 2 }
    end

    assert_equal %w[/other /many], order
  end

  # Decoding one of their requests takes about the time that reading has in a tick. All of them came before the request
  # of another client, which is served before most of them are read.
  def test_many_clients_with_much_to_decode_do_not_delay_others
    order = []
    held = Thread::Queue.new
    go = Thread::Queue.new
    app = lambda do |env|
      env["PATH_INFO"] == "/hold" ? (held << true) && hold_up(go) : order << env["PATH_INFO"]
      [200, {}, ["x"]]
    end
    serving(app, lint: false, access_log: false, protect: [], header_count: 10_000, header_limit: 1_000_000) do
      many = Array.new(50) { H2Client.new(connect).tap(&:send_preface) }
      many.each { |client| 2.times { client.read_frame } }
      (other = connect).write(request("/first"))
      read_answer(other)
      connect.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      bytes = request_with_fields(9_000)
      many.each { |client| client.send_bytes(bytes) }
      other.write(request("/other"))
      go << true
      read_answer(other)
    end

    assert_operator order.index("/other"), :<, 20
  end

  LARGE_RESPONSE = ("x" * 20_000_000).freeze
  WRITE_LIMIT = 2
  # Bytes that are sent of a response before others have their turn.
  PART = 262_144

  def test_clients_that_read_large_responses_do_not_delay_others_over_http1
    assert_others_are_served(:http1)
  end

  def test_clients_that_read_large_responses_do_not_delay_others_over_http2
    assert_others_are_served(:http2)
  end

  # The request waits until its client has taken the response.
  def test_clients_that_read_awaited_responses_do_not_delay_others_over_http1
    assert_others_are_served(:http1) { |env| large_response(env).tap { env["rack.response_finished"] << ->(*) {} } }
  end

  def test_clients_that_read_streamed_responses_do_not_delay_others_over_http1
    assert_others_are_served(:http1) { Enumerator.new { |body| 300.times { body << ("x" * 65_536) } } }
  end

  def test_clients_that_read_streamed_responses_do_not_delay_others_over_http2
    assert_others_are_served(:http2) { Enumerator.new { |body| 300.times { body << ("x" * 65_536) } } }
  end

  def test_clients_that_read_files_do_not_delay_others_over_http1
    Tempfile.create("large") do |file|
      file.write(LARGE_RESPONSE)
      file.flush
      body = Struct.new(:to_path) { def each = raise("it was read") }.new(file.path)
      assert_others_are_served(:http1) { body }
    end
  end

  # Two parts: one by the request's own turn, and one as the beginning of the rest. There may be some turns before the
  # other client is served.
  def test_first_sends_of_large_responses_are_bounded
    skip "only Linux tells how much of a connection is in the kernel" unless File.exist?("/proc/net/tcp")

    held = Thread::Queue.new
    go = Thread::Queue.new
    readers = []
    unread = nil
    app = lambda do |env|
      env["PATH_INFO"] == "/hold" && (held << true) && hold_up(go)
      unread = Fiber.new(blocking: true) { count_in_kernel(readers) }.resume if env["PATH_INFO"] == "/other"
      [200, { "content-type" => "text/plain" }, env["PATH_INFO"] == "/large" ? large_response(env) : ["x"]]
    end
    serving(app, lint: false, access_log: false, protect: []) do
      [*readers = Array.new(40) { connect }, other = connect].each do |socket|
        socket.write(request("/first"))
        read_answer(socket)
      end
      connect.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      readers.each { |socket| socket.write(request("/large")) }
      other.write(request("/other"))
      go << true
      read_answer(other)
    end

    assert_includes PART..(4 * PART), unread / readers.size
  end

  def test_clients_that_read_are_not_cut_off_while_they_wait_for_their_turn_over_http1
    assert_readers_are_served(:http1)
  end

  def test_clients_that_read_are_not_cut_off_while_they_wait_for_their_turn_over_http2
    assert_readers_are_served(:http2)
  end

  # At the limit of connections, too: the loop is blocked for so long that all of them seem to pause.
  def test_clients_that_read_are_not_closed_for_others_while_they_wait_for_their_turn_over_http1
    assert_readers_are_kept(:http1)
  end

  def test_clients_that_read_are_not_closed_for_others_while_they_wait_for_their_turn_over_http2
    assert_readers_are_kept(:http2)
  end

  # All of them have read what the kernel had for them before another client asks, which is served while most of them
  # still wait for more.
  def assert_others_are_served(protocol, &large)
    large ||= method(:large_response)
    held = Thread::Queue.new
    go = Thread::Queue.new
    waiting = nil
    readers = []
    app = lambda do |env|
      path = env["PATH_INFO"]
      path == "/hold" && (held << true) && hold_up(go)
      waiting = readers.count { |socket| nothing_came?(socket) } if path == "/other"
      [200, { "content-type" => "text/plain" }, path == "/large" ? large.call(env) : ["x"]]
    end
    serving(app, lint: false, access_log: false, protect: []) do
      readers = Array.new(40) { ask_for_large(protocol) }
      (other = connect).write(request("/first"))
      read_answer(other)
      readers.each { |socket| socket.wait_readable(PATIENCE) }
      connect.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      readers.each { |socket| read_available(socket) }
      other.write(request("/other"))
      go << true
      read_answer(other)
    end

    assert_operator waiting, :>=, 20
  end

  # /hold blocks the loop; /large has a large response.
  # @yield [held, go] the Queue that gets the time at which /hold began, and the one that lets it end
  def serving_held(**)
    held, go = Array.new(2) { Thread::Queue.new }
    app = lambda do |env|
      path = env["PATH_INFO"]
      path == "/hold" && (held << now) && hold_up(go)
      [200, { "content-type" => "text/plain" }, [path == "/large" ? LARGE_RESPONSE : "x"]]
    end
    serving(app, lint: false, access_log: false, protect: [], **) { yield held, go }
  end

  # The loop is blocked for longer than the limit, and then the clients' turns are spread over several ticks.
  def assert_readers_are_served(protocol)
    serving_held(write_timeout: WRITE_LIMIT) do |held, go|
      readers = Array.new(20) { ask_for_large(protocol) }
      readers.each { |socket| socket.wait_readable(PATIENCE) }
      connect.write(request("/hold"))
      began = held.pop(timeout: PATIENCE)
      readers.each { |socket| read_available(socket) }
      sleep(0.01) until now > began + WRITE_LIMIT
      go << true

      readers.each { |socket| refute_nil socket.wait_readable(PATIENCE) && socket.readpartial(1) }
    end
  end

  # The limit of connections is reached while the loop is blocked.
  def assert_readers_are_kept(protocol)
    serving_held(max_connections: 21, trusted_proxies: %w[127.0.0.0/8]) do |held, go|
      readers = Array.new(20) { ask_for_large(protocol) }
      readers.each { |socket| socket.wait_readable(PATIENCE) }
      connect.write(request("/hold"))
      began = held.pop(timeout: PATIENCE)
      left = readers.to_h { |socket| [socket, LARGE_RESPONSE.bytesize - read_available(socket)] }
      (other = connect).write(request("/other"))
      sleep(0.01) until now > began + 2
      go << true

      read_rest(left)
      read_answer(other)
    end
  end

  # Raises EOFError if one has no end.
  def read_rest(left)
    until left.empty?
      ready, = IO.select(left.keys, nil, nil, PATIENCE)
      refute_nil ready
      ready.each { |socket| left[socket] -= socket.readpartial(1_000_000).bytesize }
      left.delete_if { |_, size| size <= 0 }
    end
  end

  def large_response(_env) = [LARGE_RESPONSE]

  # Bytes of the server that the sockets have not read: in their own queues, and in those of the server's sockets.
  def count_in_kernel(sockets)
    ports = sockets.map { |socket| format(":%04X", socket.local_address.ip_port) }
    File.foreach("/proc/net/tcp").sum do |line|
      _, own, peer, _, queues = line.split
      sent, received = queues.split(":").map(&:hex)
      next sent if peer.end_with?(*ports)

      own.end_with?(*ports) ? received : 0
    end
  end

  def ask_for_large(protocol)
    connect.tap { |socket| socket.write(protocol == :http2 ? request_large_over_http2 : request("/large")) }
  end

  # Does not let the loop continue, as wait_readable would.
  def nothing_came?(socket) = socket.recv_nonblock(1, Socket::MSG_PEEK, exception: false) == :wait_readable

  # The kernel moves the rest of what the server has written while its loop is blocked. Returns how many bytes.
  def read_available(socket)
    size = 0
    size += socket.readpartial(1_000_000).bytesize while socket.wait_readable(0.02)
    size
  end

  # Two clients of HTTP/1.1 that ask one after the other: the request of one comes while that of the other is served,
  # and so in no tick is more than one of them ready.
  def test_a_client_with_many_streams_has_one_turn_in_each_round
    order = []
    over = Thread::Queue.new
    others = {}
    app = lambda do |env|
      order << (path = env["PATH_INFO"])
      over << true if order.size == 60
      others[path]&.write_nonblock(request(path == "/a" ? "/b" : "/a")) if order.size < 60
      others.delete("/many") if path == "/many"
      [200, { "content-type" => "text/plain" }, [path]]
    end
    serving(app, lint: false, access_log: false) do
      others["/a"] = connect
      others["/b"] = others["/many"] = connect
      others.values.uniq.each { |socket| socket.write(request("/first")) && read_answer(socket) }
      connect.write(many_streams(40))
      over.pop(timeout: PATIENCE)
    end
    counts = order[4, 48].tally # rounds of three

    assert_operator counts.values.max - counts.values.min, :<=, 1, order.join(" ")
  end

  # Clients with a new connection for each request have one turn each, so that none of theirs ends a round. There are
  # more than are served in a tick.
  def test_a_client_with_many_streams_has_its_turns_among_clients_that_come_once
    order = []
    over = Thread::Queue.new
    sockets = []
    app = lambda do |env|
      order << (path = env["PATH_INFO"])
      over << true if order.size == 80
      compute(0.003)
      sockets << connect.tap { |socket| socket.write(request("/once")) } if path == "/once" && order.size < 80
      [200, { "content-type" => "text/plain", "connection" => "close" }, [path]]
    end
    serving(app, lint: false, access_log: false, protect: []) do
      connect.write(many_streams(40))
      8.times { sockets << connect.tap { |socket| socket.write(request("/once")) } }
      over.pop(timeout: PATIENCE)
    end

    assert_operator order.first(80).count("/many"), :>=, 5, order.join(" ")
  end

  UPGRADE = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  # All of them have left before the requests of others came, which are served before most of them are closed.
  def test_clients_that_leave_together_do_not_delay_the_others
    left = 0
    held = Thread::Queue.new
    go = Thread::Queue.new
    handler = Class.new { define_method(:on_close) { |_client| left += 1 } }.new
    app = lambda do |env|
      next [101, {}, []].tap { env["rack.upgrade"] = handler } if env["rack.upgrade?"]

      env["PATH_INFO"] == "/hold" && (held << true) && hold_up(go)
      [200, {}, [left.to_s]]
    end
    serving(app, lint: false, access_log: false, protect: []) do
      leaving = Array.new(300) { connect.tap { |socket| socket.write(UPGRADE) && socket.gets("\r\n\r\n") } }
      (other = connect).write(request("/first"))
      read_answer(other)
      multiplexed = H2Client.new(connect.tap { |socket| socket.setsockopt(:TCP, :NODELAY, true) }).tap(&:send_preface)
      2.times { multiplexed.read_frame } # it is known as one of HTTP/2
      connect.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      leaving.each(&:close)
      multiplexed.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=/other")
      other.write(request("/other"))
      go << true

      assert_operator Integer(read_answer(other)[/\d+\z/]), :<, 200
      frame = multiplexed.read_frame until frame&.type == "DATA"

      assert_operator Integer(frame.payload), :<, 200
      until_statistics { left == 300 }
    end
  end

  def test_requests_that_compute_leave_the_loop_its_turns
    order = order_of(milliseconds: 10, ticking: true) do
      sockets = Array.new(30) { connect }
      sockets.each { |socket| socket.write(request("/compute")) }
      sockets.map { |socket| [socket, 1] }
    end
    runs = order.chunk_while { |one, other| one == other }.select { |run| run.first == "/compute" }

    assert_equal 30, order.count("/compute")
    assert_operator runs.map(&:size).max, :<=, 6, "requests in a row, of 10 ms each"
  end
end
