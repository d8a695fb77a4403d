# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "heddle/event_stream"
require "server/web_socket_helpers"
require "support/h2_client"
require "support/h2_web_socket_client"

# What clients of HTTP/2 that don't read can make the server keep.
class Http2MemoryTest < Minitest::Test
  include WebSocketHelpers

  # Its windows are closed.
  def client_that_reads_nothing(paths)
    client = H2Client.new(connect)
    client.send_preface
    client.send_frame("SETTINGS - 0 000400000000")
    paths.each_with_index do |path, i|
      client.send_frame("HEADERS es+eh #{(2 * i) + 1} :method=GET :scheme=http :authority=a :path=#{path}")
    end
    (@clients ||= []) << Struct.new(:io).new(client)
    client
  end

  # Each response is one string of 300,000 bytes.
  def serving_large_strings(memory)
    @begun = Thread::Queue.new
    app = lambda do |env|
      @begun << env["PATH_INFO"] if env["PATH_INFO"] != "/other"
      [200, { "content-type" => "text/plain" }, [env["PATH_INFO"] * (300_000 / env["PATH_INFO"].size)]]
    end
    serving(app, lint: false, http2_memory: memory) { yield Array.new(10) { |i| "/#{i}" } }
  end

  def begun(count) = Array.new(count) { @begun.pop(timeout: PATIENCE) }

  # Several ticks of the loop.
  def serve_others = 3.times { get("/other") }

  def bodies_of(client, count)
    bodies = Hash.new { |hash, stream| hash[stream] = +"" }
    ended = 0
    while ended < count && (frame = client.read_frame)
      bodies[frame.stream] << frame.payload if frame.type == "DATA"
      ended += 1 if frame.end_stream?
    end
    bodies.sort.map(&:last)
  end

  # Paths of the requests that begin before the memory is full. The third may be ready before the second has its
  # response.
  def begun_before_it_is_full(paths)
    count = begun(2).size
    serve_others
    count += begun(@begun.size).size

    assert_includes 2..3, count
    serve_others

    assert_predicate @begun, :empty?
    paths.first(count)
  end

  def test_while_responses_fill_http2_memory_a_connection_with_one_has_no_further_request_begun
    serving_large_strings(500_000) do |paths|
      client = client_that_reads_nothing(paths)
      first = begun_before_it_is_full(paths)
      client.send_frame("SETTINGS - 0 000400100000")
      client.send_frame("WINDOW_UPDATE - 0 #100000000")

      assert_equal(paths.map { |path| path * 150_000 }, bodies_of(client, 10))
      assert_equal paths - first, begun(10 - first.size)
    end
  end

  def test_requests_that_were_held_back_begin_when_the_client_resets_others
    serving_large_strings(500_000) do |paths|
      client = client_that_reads_nothing(paths)
      first = begun_before_it_is_full(paths)
      [1, 3].each { |stream| client.send_frame("RST_STREAM - #{stream} #8") }

      assert_equal paths[first.size, 2], begun(2)
    end
  end

  def test_with_enough_http2_memory_all_requests_begin
    serving_large_strings(3_000_000) do |paths|
      client_that_reads_nothing(paths)

      assert_equal paths, begun(10)
    end
  end

  # With 256 descriptors the server has 64 files for bodies. Each response is a file of 300,000 bytes.
  def serving_files
    descriptors, most = Process.getrlimit(:NOFILE)
    @begun = Thread::Queue.new
    content = Tempfile.create.tap { |file| file.write("x" * 300_000) || file.close }
    file = Struct.new(:to_path) { def each = raise("the file was not sent as such") }.new(content.path)
    app = lambda do |env|
      next [200, {}, ["other"]] if env["PATH_INFO"] == "/other"

      @begun << env["PATH_INFO"]
      [200, {}, file]
    end
    serving(app, lint: false) do
      Process.setrlimit(:NOFILE, 256, most) # the server has raised it before
      yield Array.new(100) { |i| "/#{i}" }
    ensure
      Process.setrlimit(:NOFILE, descriptors, most)
      File.unlink(content)
    end
  end

  def test_while_clients_that_read_nothing_hold_many_files_a_connection_with_one_has_no_further_request_begun
    serving_files do |paths|
      client = client_that_reads_nothing(paths)
      count = begun(65).size
      3.times { serve_others }

      assert_operator count + @begun.size, :<=, 66
      client.send_frame("SETTINGS - 0 000400100000")
      client.send_frame("WINDOW_UPDATE - 0 #100000000")

      assert_equal [300_000] * 100, bodies_of(client, 100).map(&:size)
    end
  end

  def counting(app)
    Heddle::PubSub::History.open(16 << 20, 100, 300)
    lambda do |env|
      next app.call(env) unless env["PATH_INFO"] == "/subscribers"

      [200, {}, [Heddle::PubSub::Subscription.statistics(Fiber.scheduler)[:subscribers].to_s]]
    end
  end

  def until_now = Timeout.timeout(PATIENCE) { sleep 0.001 until yield }

  # 160 KB for each of eight subscribers on one connection, whose client reads nothing, and then little until the block
  # is true.
  def flood_subscribers(connect)
    connection = H2WebSocketConnection.new(self.connect, window: 0)
    Array.new(8) { connect.call(connection) }
    until_now { get("/subscribers").body == "8" }
    40.times { Heddle::PubSub.publish(name, "x" * 8_192) } # 320 KiB; an equal share of 1 MiB is 128 KiB
    until_now { Heddle::PubSub.publish(name, "y") && yield }
  ensure
    (@clients ||= []) << Struct.new(:io).new(connection)
  end

  # Streams end until each of the others may keep its 320 KiB.
  # @return [Integer] bytes
  def resident = File.read("/proc/self/statm").split[1].to_i * 4_096

  def idle_client
    client = H2Client.new(connect)
    client.send_preface
    client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=/")
    frame = client.read_frame until frame&.end_stream?
    client
  end

  def test_idle_connections_keep_no_output_buffer
    skip "freed memory counts here" if ENV["HEDDLE_SANITIZED"] || !File.exist?("/proc/self/statm")

    body = ["a" * 60_000].freeze
    serving(->(_) { [200, { "content-type" => "text/plain" }, body] }) do
      warm = Array.new(20) { idle_client }
      before = resident
      clients = Array.new(200) { idle_client }

      assert_operator (resident - before) / 200, :<, 80_000
      [*warm, *clients].each(&:close)
    end
  end

  def test_event_streams_share_the_output_limit_of_a_connection
    app = counting(->(_env) { Heddle::EventStream.response(name) })
    serving(app, lint: false) do
      flood_subscribers(->(connection) { connection.connect("/", method: "GET", protocol: nil) }) do
        get("/subscribers").body.to_i <= 3
      end
    end
  end

  def test_web_sockets_share_the_output_limit_of_a_connection
    subscribing = Class.new do
      def initialize(topic) = @topic = topic
      def on_open(client) = client.subscribe(@topic)
    end.new(name)
    serving(counting(upgrading(subscribing)), lint: false, http2_websockets: true) do
      flood_subscribers(:connect.to_proc) do
        get("/subscribers") && server.engines.sum { |engine| engine.websockets[:too_slow] } == 8
      end
    end
  end
end
