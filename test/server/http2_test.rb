# frozen_string_literal: true

# test: sanitize
# test: smoke

require "test_helper"
require "server/server_helpers"
require "server/tls_helpers"
require "support/h2_client"
require "digest"
require "open3"

# Applications over HTTP/2, by curl; cases of the protocol are in test/http/h2.
class Http2Test < Minitest::Test
  include ServerHelpers
  include TLSHelpers

  LARGE = "0123456789abcdef" * 200_000
  APP = lambda do |env|
    text = { "content-type" => "text/plain" }
    case env["PATH_INFO"]
    when "/env" then [200, text, [env.values_at("SERVER_PROTOCOL", "rack.hijack?").inspect]]
    when "/length" then [200, text, [env["rack.input"].read.to_s.bytesize.to_s]]
    when "/large" then [200, text.merge("connection" => "keep-alive"), [LARGE]]
    when "/parts"
      [200, text, Enumerator.new { |parts| 3.times { |i| parts << "part #{i}\n" } }]
    when "/cut" then [200, text, Enumerator.new { |parts| (parts << "a") && raise("cut") }]
    when "/fail" then raise "no"
    else [200, text, ["hello"]]
    end
  end

  def curl(path, *)
    Open3.capture2e("curl", "-sS", "--http2-prior-knowledge", *, "http://127.0.0.1:#{port}#{path}")
  end

  def test_a_plain_connection_by_prior_knowledge
    serving(APP) do
      assert_equal "hello", curl("/").first
      assert_equal %(["HTTP/2", false]), curl("/env").first
      assert_match(%r{\AHTTP/2 200}, curl("/", "-I").first)
      assert_equal "part 0\npart 1\npart 2\n", curl("/parts").first
    end
  end

  def test_large_bodies_pass_in_both_directions
    serving(APP) do
      assert_equal LARGE, curl("/large").first
      output, = Open3.capture2e("curl", "-sS", "--http2-prior-knowledge", "--data-binary", "@-",
                                "http://127.0.0.1:#{port}/length", stdin_data: LARGE)

      assert_equal LARGE.bytesize.to_s, output
    end
  end

  def test_a_response_that_fails_is_seen_as_incomplete
    serving(APP) do
      output, status = curl("/cut")

      assert_equal 92, status.exitstatus, output # CURLE_HTTP2_STREAM
      assert_match(/HTTP2? ?.?500|500 Internal/, curl("/fail", "-i").first)
    end
  end

  def test_a_client_that_leaves_within_a_body_fails_the_read
    started = Thread::Queue.new
    failure = Thread::Queue.new
    app = lambda do |env|
      started << true
      env["rack.input"].read
      [200, {}, []]
    rescue StandardError => e
      failure << e
      raise
    end
    serving(app, lint: false, stream_bodies: %w[all]) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS eh 1 post")
      3.times { client.send_frame("DATA - 1 00*16384") }

      assert started.pop(timeout: PATIENCE)
      client.send_frame("RST_STREAM - 1 #8")

      assert_kind_of Heddle::ClientGoneError, failure.pop(timeout: PATIENCE)
      client.send_frame("HEADERS es+eh 3 get")
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.end_stream?

      assert_equal 3, frame&.stream
    ensure
      client&.close
    end
  end

  def test_a_streamed_body_is_asked_for_when_the_application_reads
    app = lambda do |env|
      env["PATH_INFO"] == "/read" ? [200, {}, [env["rack.input"].read]] : [403, {}, ["no"]]
    end
    serving(app, lint: false, stream_bodies: %w[all]) do
      { "/read" => 1, "/refuse" => 3 }.each do |path, stream|
        client = H2Client.new(connect)
        client.send_preface
        client.send_frame("HEADERS eh #{stream} :method=POST :scheme=http :path=#{path} :authority=localhost " \
                          "expect=100-continue content-length=2")
        frames = [client.read_frame]
        frames << client.read_frame until frames.last.nil? || frames.last.type == "HEADERS"
        client.send_frame("DATA es #{stream} \"hi\"") if path == "/read"
        frames << client.read_frame until frames.last.nil? || frames.last.end_stream?
        heads = frames.compact.count { |frame| frame.type == "HEADERS" }

        assert_equal({ "/read" => 2, "/refuse" => 1 }[path], heads, path)
        assert_equal({ "/read" => "hi", "/refuse" => "no" }[path], frames.last&.payload, path)
      ensure
        client&.close
      end
    end
  end

  # rack.input then reads in place, as over HTTP/1.1: a native library may read it in a callback.
  def test_a_body_is_complete_before_the_application_is_called
    inputs = Thread::Queue.new
    app = lambda do |env|
      inputs << env["rack.input"].class
      [200, { "content-type" => "text/plain" }, [Digest::SHA256.hexdigest(env["rack.input"].read)]]
    end
    serving(app, lint: false) do
      [1, 65_536, 65_537, 262_145, 1_000_000].each do |size|
        body = Random.bytes(size)
        output, = Open3.capture2e("curl", "-sS", "--http2-prior-knowledge", "--data-binary", "@-",
                                  "http://127.0.0.1:#{port}/", stdin_data: body)

        assert_equal Digest::SHA256.hexdigest(body), output, size
        assert_equal Heddle::Rack::Input, inputs.pop(timeout: PATIENCE), size
      end
    end
  end

  def test_a_body_that_comes_too_slowly_is_refused
    serving(APP, body_grace: 0.05, body_rate: 1_000_000) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS eh 1 post")
      client.send_frame("DATA - 1 00*100")
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.end_stream?

      assert_match(/the body came slower than 1000000 bytes a second/, frame.payload)
    ensure
      client&.close
    end
  end

  def test_body_that_pauses_is_refused_however_fast_it_came
    serving(APP, body_grace: 0.05, body_rate: 1, body_timeout: 0.05) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS eh 1 post")
      client.send_frame("DATA - 1 00*1000")
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.end_stream?

      assert_match(/or paused for 0.05 s/, frame.payload)
    ensure
      client&.close
    end
  end

  # With 256 descriptors the server has 64 files for bodies, and 8 of them for one connection.
  def test_bodies_in_files_of_one_connection_leave_descriptors_to_others
    serving(APP, body_buffer: 0) do
      descriptors, most = Process.getrlimit(:NOFILE)
      Process.setrlimit(:NOFILE, 256, most) # the server has raised it before
      client = H2Client.new(connect)
      client.send_preface
      (1..17).step(2) do |stream|
        client.send_frame("HEADERS eh #{stream} post")
        client.send_frame("DATA - #{stream} 00*9")
      end
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.end_stream?

      assert_equal 17, frame.stream
      assert_match(/too many request bodies are stored in files/, frame.payload)
      assert_equal "1", curl("/length", "-d", "x").first
    ensure
      client&.close
      Process.setrlimit(:NOFILE, descriptors, most)
    end
  end

  def test_a_body_without_a_length_has_the_limit_of_all
    serving(APP, body_limit: 100_000) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS eh 1 post")
      7.times { client.send_frame("DATA - 1 00*16384") }
      frame = client.read_frame
      frame = client.read_frame until frame.nil? || frame.type == "DATA"

      assert_match(/the body is larger than 100000 bytes/, frame.payload)
    ensure
      client&.close
    end
  end

  def test_responses_that_wait_for_a_slow_client_are_whole
    count = 30
    started = Thread::Queue.new
    app = lambda do |_env|
      started << true
      [200, { "content-type" => "text/plain" }, ["x" * 60_000]]
    end
    serving(app, lint: false) do
      client = H2Client.new(connect)
      client.send_preface
      count.times { |i| client.send_frame("HEADERS es+eh #{(2 * i) + 1} get") }
      count.times { assert started.pop(timeout: PATIENCE) }
      client.send_frame("WINDOW_UPDATE - 0 #10000000")
      sizes = Hash.new(0)
      ended = 0
      while ended < count && (frame = client.read_frame)
        sizes[frame.stream] += frame.payload.bytesize if frame.type == "DATA"
        ended += 1 if frame.end_stream?

        refute_equal "RST_STREAM", frame.type
      end

      assert_equal [60_000] * count, sizes.values
    ensure
      client&.close
    end
  end

  # As over HTTP/1.1: what is complete is kept in C until the client takes it.
  def test_a_client_that_reads_responses_slowly_blocks_no_fiber
    count = 30
    started = Thread::Queue.new
    app = lambda do |env|
      started << true
      [200, { "content-type" => "text/plain" }, ["x" * 300, env["PATH_INFO"] * 100_000]]
    end
    serving(app, lint: false) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("SETTINGS - 0 000400000000")
      count.times do |i|
        client.send_frame("HEADERS es+eh #{(2 * i) + 1} :method=GET :scheme=http :authority=a :path=/#{i + 10}")
      end
      count.times { assert started.pop(timeout: PATIENCE) }
      Timeout.timeout(PATIENCE) { sleep 0.001 until @server.statistics.values_at(:waiting, :running) == [0, 0] }
      GC.start
      GC.compact if GC.respond_to?(:compact)
      client.send_frame("SETTINGS - 0 000400100000")
      client.send_frame("WINDOW_UPDATE - 0 #100000000")

      assert_equal (10...(10 + count)).map { |i| ("x" * 300) + ("/#{i}" * 100_000) }, bodies_of(client, count)
    ensure
      client&.close
    end
  end

  # @return [Array<String>] of the first streams, when all are complete
  def bodies_of(client, count)
    bodies = Hash.new { |hash, stream| hash[stream] = +"" }
    ended = 0
    while ended < count && (frame = client.read_frame)
      bodies[frame.stream] << frame.payload if frame.type == "DATA"
      ended += 1 if frame.end_stream?
    end
    bodies.sort.map(&:last)
  end

  def test_a_server_that_stops_says_goaway_on_an_idle_connection
    serving(APP) { assert_equal %w[NO_ERROR], goaways_of(connect).map(&:error).uniq }
  end

  # RFC 9113, section 6.8: the first one leaves room for requests that are on their way, the second has the last stream.
  def test_goaway_is_sent_twice_over_tls_while_a_request_runs
    @gate = Thread::Queue.new
    started = Thread::Queue.new
    app = ->(_env) { [200, {}, [(started << true) && @gate.pop.to_s]] }
    serving_tls(app, lint: false) do
      client = H2Client.new(connect_tls(alpn_protocols: %w[h2]))
      client.send_preface
      client.send_frame("HEADERS es+eh 1 get")

      assert started.pop(timeout: PATIENCE)
      stopping = Thread.new { stop }
      first = read_until(client, "GOAWAY")
      client.send_frame("HEADERS es+eh 3 get") # on its way before the client knew
      client.send_frame("PING - 0 00*8")

      assert started.pop(timeout: PATIENCE), "a request before the second GOAWAY is served"
      second = read_until(client, "GOAWAY")
      2.times { @gate << "done" }

      assert_equal [2_147_483_647, 3], [first, second].map { |frame| frame.payload.unpack1("N") }
      assert_equal 2, read_all_frames(client).count(&:end_stream?)
    ensure
      2.times { @gate << "done" }
      client&.close
      stopping&.join
    end
  end

  def read_until(client, type)
    frame = client.read_frame
    frame = client.read_frame until frame.nil? || frame.type == type
    frame or flunk "the connection ended before #{type}"
  end

  def read_all_frames(client)
    frames = []
    while (frame = client.read_frame)
      frames << frame
    end
    frames
  end

  # @return [Array<H2Client::Frame>] of a server that stops after the first request
  def goaways_of(socket)
    client = H2Client.new(socket)
    client.send_preface
    client.send_frame("HEADERS es+eh 1 get")
    frame = client.read_frame
    frame = client.read_frame until frame.nil? || frame.end_stream?
    stopping = Thread.new { stop }
    read_all_frames(client).select { |one| one.type == "GOAWAY" }
  ensure
    client&.close
    stopping&.join
  end

  def test_connections_take_turns_however_many_streams_one_has
    started = Thread::Queue.new
    gate = Thread::Queue.new
    app = lambda do |env|
      started << (order = env["PATH_INFO"])
      gate.pop if order == "/1"
      [200, { "content-type" => "text/plain" }, ["x"]]
    end
    serving(app, lint: false, max_requests: 1) do
      client = H2Client.new(connect)
      client.send_preface
      (1..9).step(2) do |stream|
        client.send_frame("HEADERS es+eh #{stream} :method=GET :scheme=http :authority=a :path=/#{stream}")
      end

      assert_equal "/1", started.pop(timeout: PATIENCE)
      other = connect
      other.write("GET /other HTTP/1.1\r\nHost: a\r\n\r\n")
      Timeout.timeout(PATIENCE) { sleep 0.001 until @server.statistics[:waiting] == 2 }
      gate << true
      order = Array.new(5) { started.pop(timeout: PATIENCE) }

      assert_operator order.index("/other"), :<=, 1, order.inspect
    ensure
      client&.close
      other&.close
    end
  end

  # What the kernel has and has not sent obeys no priority: 64 KiB at most, beside as many in our own queue.
  def test_little_waits_unsent_in_the_kernel
    skip "TCP_NOTSENT_LOWAT is a number of Linux here" unless RUBY_PLATFORM.include?("linux")

    serving(APP) do
      socket = connect
      client = H2Client.new(socket)
      client.send_preface

      assert_equal "SETTINGS", client.read_frame.type
      assert_equal [65_536], unsent_limits_of(socket.local_address.ip_port)
    ensure
      client&.close
    end
  end

  # @return [Array<Integer>] of the server's sockets whose client has this port
  def unsent_limits_of(port)
    Dir.children("/proc/self/fd").filter_map do |number|
      socket = Socket.for_fd(Integer(number)).tap { |one| one.autoclose = false }
      socket.getsockopt(Socket::IPPROTO_TCP, 25).int if socket.remote_address.ip_port == port
    rescue SystemCallError, SocketError, ArgumentError
      nil
    end
  end

  def test_the_access_log_names_the_protocol
    serving(APP, log_format: :json) { curl("/") }

    assert_includes @output.string, %("protocol":"HTTP/2")
    serving(APP, log_format: :clf) { curl("/") }

    assert_match(%r{"GET / HTTP/2" 200}, @output.string)
  end

  def test_http2_can_be_switched_off
    serving(APP, http2: :off) do
      _, status = curl("/")

      refute_predicate status, :success?
      assert_match(%r{\AHTTP/1.1 505 }, exchange(H2Client::PREFACE))
      assert_equal "hello", Net::HTTP.get(URI("http://127.0.0.1:#{port}/"))
    end
    serving(APP, http2: :tls) { refute_predicate curl("/").last, :success? }
    { tls: "h2", off: "http/1.1" }.each do |http2, chosen|
      serving_tls(APP, http2:) do
        assert_equal chosen, connect_tls(alpn_protocols: %w[h2 http/1.1]).tap(&:close).alpn_protocol
      end
    end
  end

  # RFC 9113, 3.4.
  def test_bytes_that_are_no_preface_after_alpn_chose_h2_get_goaway
    serving_tls(APP) do
      ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "P0", "\0\0\0\4\0\0\0\0\0"].each do |bytes|
        client = H2Client.new(connect_tls(alpn_protocols: %w[h2]))
        client.send_bytes(bytes)
        frames = read_all_frames(client)

        assert_equal %w[SETTINGS GOAWAY PROTOCOL_ERROR], [frames.first.type, frames.last.type, frames.last.error]
        client.close
      end
      client = H2Client.new(connect_tls(alpn_protocols: %w[h2]))
      H2Client::PREFACE.each_char { |byte| client.send_bytes(byte) }
      client.send_frame("SETTINGS - 0")
      client.send_frame("HEADERS es+eh 1 get")

      assert_equal "HEADERS", read_until(client, "HEADERS").type
      client.close
    end
  end

  def test_preface_where_alpn_did_not_choose_h2_is_rejected
    serving_tls(APP) do
      [%w[http/1.1], nil].each do |protocols|
        client = connect_tls(alpn_protocols: protocols)
        client.write("#{H2Client::PREFACE}\0\0\0\4\0\0\0\0\0")

        assert_match(%r{\AHTTP/1.1 505 }, read_answer(client))
        client.close
      end
    end
  end

  def test_connect_without_a_protocol_is_rejected
    called = Thread::Queue.new
    serving(->(env) { called << env }, lint: false) do
      client = H2Client.new(connect)
      client.send_preface
      client.send_frame("HEADERS es+eh 1 :method=CONNECT :authority=a:443")

      assert_includes read_until(client, "DATA").payload, "does not open tunnels"
      assert_empty called
      client.close
    end
  end

  def test_over_tls_by_alpn
    serving_tls(APP) do
      assert_equal "h2", connect_tls(alpn_protocols: %w[h2 http/1.1]).tap(&:close).alpn_protocol
      assert_match(%r{\AHTTP/2 200.*"HTTP/2", false}m, curl_tls("/env", "--http2", "-i"))
    end
  end
end
