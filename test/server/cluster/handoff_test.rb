# frozen_string_literal: true

# test: long

require_relative "cluster_case"
require "support/certificates"
require "support/h2_client"
require_relative "../../offload/support/native_calls"

# While native code holds one worker's lock, the other worker serves its clients: those that wait there, and new ones.
class ClusterHandoffTest < Minitest::Test
  include ClusterCase

  # On /burn nothing else happens in its process, whose number is in the pipe `held` then, until something is in the
  # pipe `go`; /later does the same when the file `burn` is there. /compute can be preempted, and /wait only waits; both
  # run until the file `enough` exists. The file `begun` has the process that computes.
  APP = <<~RUBY
    require ENV.fetch("NATIVE_CALLS")
    held, go = %w[held go].map { |name| File.open(name, "r+") }
    run do |env|
      body =
        case env["PATH_INFO"]
        when "/burn" then NativeCalls.hold_between(held.fileno, go.fileno).to_s
        when "/echo" then env["rack.input"].read
        when "/worker" then $$.to_s
        when "/compute"
          File.write("begun.new", $$.to_s)
          File.rename("begun.new", "begun")
          nil until File.exist?("enough")
        when "/wait"
          File.write("waits", "")
          sleep 0.01 until File.exist?("enough")
        when "/later"
          File.write("begun", "")
          sleep 0.01 until File.exist?("burn")
          NativeCalls.hold_between(held.fileno, go.fileno).to_s
        end
      [200, { "x-worker" => $$.to_s }, [body || "here"]]
    end
  RUBY

  # After so long without events the watch sleeps.
  QUIET = 0.1

  # What one client hears on its one connection.
  Client = Struct.new(:socket) do
    def ask(path, body = nil)
      socket.write("#{body ? "POST" : "GET"} #{path} HTTP/1.1\r\nHost: a\r\n" \
                   "#{"Content-Length: #{body.bytesize}\r\n" if body}\r\n#{body}")
      self
    end

    # The worker, and the body.
    def hear
      head = socket.gets("\r\n\r\n") or raise EOFError, "no answer"
      [head[/^x-worker: (\d+)/i, 1].to_i, socket.read(head[/^content-length: (\d+)/i, 1].to_i)]
    end

    def worker = ask("/").hear.first
  end

  def setup
    super
    skip "only epoll and io_uring have a set of their own" unless RUBY_PLATFORM.include?("linux")
    %w[held go].each { |name| File.mkfifo(path(name)) }
    @held = File.open(path("held"), "r+")
    write("config.ru", APP)
  end

  def teardown
    @held&.close
    super
  end

  def serve_app(*arguments, **options)
    environment = { "RACK_ENV" => "production", "NATIVE_CALLS" => NativeCallsLibrary.path }
    serve(*arguments, environment:, **options)
  end

  def client
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    socket.timeout = PATIENCE
    Client.new(socket)
  end

  # So many clients of each of the two workers, which are idle.
  def clients_of_both(count)
    @clients = Hash.new { |hash, key| hash[key] = [] }
    wait_until("the workers don't share the clients") do
      one = client
      @clients[one.worker] << one
      @clients.size == 2 && @clients.values.all? { |list| list.size >= count }
    end
  end

  # Some of the same worker.
  def neighbours(count)
    clients_of_both(count)
    @clients.values.first
  end

  # Where nothing else happens from now on, until told to go. A machine that is busy may have led the request to the
  # other worker already.
  def await_held
    @held.wait_readable(PATIENCE) or flunk "nothing is held:\n#{served.output}"
    @stuck = @held.gets.to_i
    @free, = @clients.keys - [@stuck]
  end

  def stick(client)
    client.ask("/burn")
    await_held
  end

  def go = File.write(path("go"), "g", mode: "r+")

  def test_idle_and_new_clients_are_answered_by_the_other_worker
    serve_app("--control", "unix:#{path("control.sock")}")
    clients_of_both(5)
    blocker = @clients.values.first.shift
    stick(blocker)
    answered = @clients.values.flatten.map { |one| one.ask("/").hear.first } + Array.new(5) { client.worker }

    assert_equal [@free], answered.uniq
    go

    assert_equal @stuck, blocker.hear.first
    %w[connections_handed_off handoffs_received].each do |name|
      wait_until { metrics["heddle_#{name}_total"].values.sum >= 4 }
    end
  end

  def test_received_bytes_of_a_request_are_handed_off_with_its_connection
    serve_app
    blocker, witness, head, body = neighbours(4)
    head.socket.write("GET /ec")
    body.socket.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
    witness.worker # it has read those, too
    stick(blocker)
    head.socket.write("ho HTTP/1.1\r\nHost: a\r\n\r\n")
    body.socket.write("def")

    assert_equal [[@free, ""], [@free, "abcdef"]], [head.hear, body.hear]
    go
  end

  # Its file is of this process alone.
  def test_a_connection_whose_body_is_in_a_file_stays
    serve_app
    blocker, witness, upload = neighbours(3)
    upload.socket.write("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
    upload.socket.write("x" * 100_000)
    witness.worker # it has read that, too
    stick(blocker)
    upload.socket.write("x" * 100_000)
    go

    assert_equal [@stuck, "x" * 200_000], upload.hear
  end

  def test_requests_that_came_together_are_all_answered
    serve_app
    blocker, idle = neighbours(2)
    stick(blocker)
    idle.ask("/echo", "one").ask("/echo", "two").ask("/")

    assert_equal [[@free, "one"], [@free, "two"], [@free, "here"]], Array.new(3) { idle.hear }
    go
  end

  # The other worker has no room for them before.
  def test_requests_that_wait_for_their_turn_go_along
    serve_app("--max-requests", "1")
    clients_of_both(2)
    (blocker, waiting), (other,) = @clients.values
    await("begun") { blocker.ask("/later") }
    await("waits") { other.ask("/wait") }
    waiting.ask("/echo", "body")
    write("burn", "")
    await_held
    write("enough", "")

    assert_equal [@free, "body"], waiting.hear
    go
  end

  def await(name)
    yield
    wait_until("there is no file #{name}") { File.exist?(path(name)) }
  end

  def test_requests_of_a_worker_that_computes_go_to_one_that_sleeps
    serve_app
    clients_of_both(4)
    blocker = @clients.values.first.shift
    await("begun") { blocker.ask("/compute") }
    busy = File.read(path("begun")).to_i # on a busy machine perhaps the other one
    free, = @clients.keys - [busy]
    others = @clients.fetch(busy)

    assert_operator others.size, :>=, 3
    others.each { |one| wait_until("a request stays in the busy worker") { one.worker == free } }
    write("enough", "")

    assert_equal busy, blocker.hear.first
  end

  def test_requests_stay_in_a_worker_that_computes_where_handoff_is_off
    serve_app("--protect", "preempt")
    blocker, other = neighbours(2)
    await("begun") { blocker.ask("/compute") }

    assert_equal [@clients.keys.first], Array.new(5) { other.worker }.uniq
    write("enough", "")
    blocker.hear
  end

  def test_a_chunked_request_begun_on_a_stuck_worker_is_answered_later
    serve_app
    blocker, witness, chunks = neighbours(3)
    chunks.socket.write("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    witness.worker
    stick(blocker)
    chunks.socket.write("3\r\ndef\r\n0\r\n\r\n")

    assert_equal @free, witness.worker
    go

    assert_equal "abcdef", chunks.hear.last
  end

  def test_all_requests_wait_and_are_answered_when_every_worker_is_stuck
    serve_app
    clients_of_both(2)
    first, second = @clients.values.map(&:shift)
    stick(first)
    stick(second)
    waiting = [*@clients.values.flatten, client].each { |one| one.ask("/") }
    go

    assert_equal(["here"], waiting.map { |one| one.hear.last }.uniq)
  end

  # Their connections can't go: the clients open others, which the other worker accepts.
  def test_clients_of_http2_are_sent_elsewhere
    serve_app
    send_http2_elsewhere { TCPSocket.new(served.uri.host, served.uri.port) }
  end

  # The watch thread encrypts GOAWAY itself: between two records of the loop nobody else uses the connection's TLS.
  def test_clients_of_http2_over_tls_are_sent_elsewhere
    certificate, key = TestCertificates.write(@folder, "site", TestCertificates.make("127.0.0.1"))
    serve_app("-b", "tls://127.0.0.1:0?cert=#{certificate}&key=#{key}")
    wait_for("https://")
    port = Integer(served.output[%r{https://[^\s/]+:(\d+)}, 1])
    context = OpenSSL::SSL::SSLContext.new.tap { |one| one.alpn_protocols = %w[h2] }
    send_http2_elsewhere do
      OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", port), context).tap do |socket|
        socket.sync_close = true
        socket.connect
      end
    end
  end

  # @yieldreturn [IO] a new connection
  def send_http2_elsewhere(&connect)
    clients_of_both(1)
    idle, blocker = Array.new(2) { http2_client_of(@clients.keys.first, &connect) }
    blocker.send_frame("HEADERS es+eh 3 :method=GET :scheme=http :authority=a :path=/burn")
    await_held
    assert_equal @clients.keys.first, @stuck

    [idle, blocker].each { |one| assert_equal ["NO_ERROR", 2_147_483_647], goaway_of(one) }
    assert_equal @free, client.worker
    idle.send_frame("HEADERS es+eh 3 get") # which had left before the client knew
    go

    [idle, blocker].each { |one| assert_equal 3, answer_of(one).stream }
  end

  def http2_client_of(worker)
    loop do
      one = H2Client.new(yield)
      one.send_preface
      one.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=/worker")
      return one if answer_of(one).payload == worker.to_s

      one.close
    end
  end

  def answer_of(client)
    frame = client.read_frame
    frame = client.read_frame until frame.end_stream?
    frame
  end

  def goaway_of(client)
    frame = client.read_frame
    frame = client.read_frame until frame.type == "GOAWAY"
    [frame.error, frame.payload.unpack1("N")]
  end

  def test_in_mode_thread_and_with_several_loops_too
    [%w[--mode thread], %w[--threads 2]].each do |arguments|
      serve_app(*arguments)
      blocker, *idle = neighbours(5)
      stick(blocker)
      sleep QUIET

      assert_equal([@free], idle.map { |one| one.ask("/").hear.first }.uniq, arguments.join(" "))
      go
      blocker.hear
      served.stop
    end
  end

  def test_a_lone_worker_says_that_it_needs_a_second_one
    serve_app("-w", "1")

    wait_for("handoff (needs a second worker)")
  end
end
