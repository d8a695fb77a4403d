# frozen_string_literal: true

# test: nightly

require "test_helper"
require "support/event_stream_client"
require "support/served_process"
require "support/steady_client"
require "support/web_socket_client"
require "tmpdir"

# What memory a server still holds after thousands of equal requests, once it has warmed up.
class GrowthTest < Minitest::Test
  # Of each operation: Ruby objects that live, and bytes of malloc's in blocks that are no mappings of their own.
  # A leak has one object each time, or a block of 24 bytes at least.
  OBJECTS = 0.5
  BYTES = 20
  # Operations in a round: so many that caches, which grow by up to 100 kB in all, do not count.
  ROUND = 4_000

  APP = <<~'RUBY'
    require "openssl"

    class Echo
      def on_message(client, message) = client.write(message)
    end

    # mallinfo2 returns a struct by a hidden argument on x86-64; uordblks is its eighth field.
    BYTES = begin
      require "fiddle"
      mallinfo = Fiddle::Function.new(Fiddle::Handle::DEFAULT["mallinfo2"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)
      room = Fiddle::Pointer.malloc(80, Fiddle::RUBY_FREE)
      RUBY_PLATFORM.start_with?("x86_64") ? -> { mallinfo.call(room) && room[56, 8].unpack1("Q") } : -> { 0 }
    rescue LoadError, Fiddle::DLError
      -> { 0 }
    end
    CLIENT = Heddle::HTTP::Client.new
    HELD = []

    run lambda { |env|
      case env["PATH_INFO"]
      when "/held"
        4.times { GC.start }
        [200, {}, ["#{GC.stat(:heap_live_slots)} #{BYTES.call}"]]
      when "/leak" then [200, {}, [(HELD << "leaked" * 10).size.to_s]]
      when "/upload" then [200, {}, [env["rack.input"].read.size.to_s]]
      when "/publish" then [200, {}, [Heddle::PubSub.publish("news", "text").to_s]]
      when "/client" then [200, {}, [CLIENT.get("http://#{env["HTTP_HOST"]}/").body]]
      when "/timeout" then [200, {}, [(Heddle.timeout(0.0001) { sleep } rescue "late")]]
      when "/tasks" then [200, {}, [Array.new(3) { |i| Heddle.async { sleep(0); i } }.sum(&:value).to_s]]
      when "/thread" then [200, {}, [Thread.new { 1 }.value.to_s]]
      when "/offload" then [200, {}, [File.read(__FILE__).size.to_s]]
      when "/error" then raise "no"
      when "/stream" then [200, {}, Enumerator.new { |body| 5.times { body << "abc" } }]
      when "/echo" then Heddle::WebSocket.upgrade(env, Echo.new)
      when "/news" then Heddle::EventStream.response("news", since: env["HTTP_LAST_EVENT_ID"])
      else [200, {}, ["hello"]]
      end
    }
  RUBY

  def setup
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), APP)
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "--workers", "0", "-b", "127.0.0.1:0",
                                 "--protect", "offload,preempt", "--log-level", "error", "--no-access-log"],
                                folder: @folder, environment: { "MALLOC_MMAP_THRESHOLD_" => "131072" })
  end

  def teardown
    @served.stop
    FileUtils.rm_rf(@folder)
  end

  def test_requests_leave_nothing
    assert_nothing_left("GET /") { client.call("GET", "/") }
    assert_nothing_left("a new connection") { SteadyClient.new(host, port, kept: false).call("GET", "/") }
    %w[/stream /tasks /timeout /thread /offload /error /client].each do |path|
      assert_nothing_left("GET #{path}") { client.call("GET", path) }
    end
    body = "b" * 100_000
    assert_nothing_left("POST /upload") { client.call("POST", "/upload", body) }
  end

  def test_web_sockets_and_event_streams_leave_nothing
    socket = WebSocketClient.new(TCPSocket.new(host, port), "/echo")
    assert_nothing_left("a message of a WebSocket") do
      socket.text("text")
      socket.read
    end
    assert_nothing_left("a WebSocket") do
      one = WebSocketClient.new(TCPSocket.new(host, port), "/echo")
      one.text("text")
      one.read
      one.io.close
    end
    stream = EventStreamClient.new(TCPSocket.new(host, port), "/news")
    assert_nothing_left("a message of an event stream") do
      client.call("POST", "/publish")
      stream.event
    end
    assert_nothing_left("an event stream") { EventStreamClient.new(TCPSocket.new(host, port), "/news").close }
  end

  def test_a_leak_is_found
    leaked = assert_raises(Minitest::Assertion) { assert_nothing_left("GET /leak") { client.call("GET", "/leak") } }
    assert_includes leaked.message, "GET /leak"
  end

  private

  def host = @served.uri.host

  def port = @served.uri.port

  def client = @client ||= SteadyClient.new(host, port)

  # Where nothing leaks, one of two rounds leaves nothing; a leak is in both.
  def assert_nothing_left(name, &)
    (ROUND / 5).times(&)
    before = held
    rounds = Array.new(2) do
      ROUND.times(&)
      now = held
      growth = now.zip(before).map { |after, first| after - first }
      before = now
      growth
    end
    objects, bytes = rounds.transpose.map { |both| both.min.fdiv(ROUND) }

    assert_operator objects, :<, OBJECTS, "objects that each operation leaves: #{name}"
    assert_operator bytes, :<, BYTES, "bytes that each operation leaves: #{name}"
  end

  # @return [Array<Integer>] live objects, and bytes
  def held = SteadyClient.new(host, port, kept: false).call("GET", "/held").body.split.map(&:to_i)
end
