# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/h2_client"
require_relative "server_helpers"

# Requests of health checks (`health_paths`), and their responses while the server stops (`drain_delay`).
class HealthPathsTest < Minitest::Test
  include ServerHelpers

  def setup
    @arrived = Thread::Queue.new
    @release = Thread::Queue.new
  end

  def teardown
    @release.close
    stop
  end

  # Requests wait until they are let go, but for those of /up and /healthz.
  def held
    lambda do |env|
      path = env["PATH_INFO"]
      unless %w[/up /healthz].include?(path)
        @arrived << path
        @release.pop
      end
      [200, { "content-type" => "text/plain" }, [path]]
    end
  end

  def ask(path, socket = connect) = socket.tap { socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }

  def curl(path, *)
    Open3.capture2e("curl", "-sS", "-i", "--max-time", PATIENCE.to_s, *, "http://127.0.0.1:#{port}#{path}").first
  end

  # Requests of /up wait until they are let go.
  def held_checks
    lambda do |env|
      path = env["PATH_INFO"]
      if path == "/up"
        @arrived << path
        @release.pop
      end
      [200, { "content-type" => "text/plain" }, [path]]
    end
  end

  # Computes for a millisecond.
  def compute
    ends = processor_time + 1
    nil while processor_time < ends
  end

  def processor_time = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :float_millisecond)

  def fill_queue
    ask("/1")
    @arrived.pop(timeout: PATIENCE)
    ask("/2")
    until_statistics { |found| found[:waiting] == 1 }
  end

  def test_health_checks_are_answered_while_the_queue_is_full
    start(held, max_requests: 1, queue_limit: 1, queue_timeout: 600)
    fill_queue

    assert_match(%r{\AHTTP/1.1 503 }, read_all(ask("/3")))
    assert_match(%r{\AHTTP/1.1 200 .*/up\z}m, read_answer(ask("/up?from=balancer")))
    assert_equal "/up", content_over_http2(connect, "/up")
    assert_equal 1, server.statistics[:waiting]
  end

  def test_a_health_path_is_neither_a_prefix_nor_the_default_where_the_option_names_another
    start(held, max_requests: 1, queue_limit: 1, queue_timeout: 600, health_paths: %w[/healthz])
    fill_queue

    assert_match(%r{\AHTTP/1.1 503 }, read_all(ask("/up")))
    assert_match(%r{\AHTTP/1.1 503 }, read_all(ask("/healthz/more")))
    assert_match(%r{\AHTTP/1.1 200 .*/healthz\z}m, read_answer(ask("/healthz")))
  end

  def test_a_health_check_does_not_wait_for_a_queued_stream_of_its_connection
    start(held, max_requests: 1, queue_timeout: 600)
    ask("/1")
    @arrived.pop(timeout: PATIENCE)
    client = H2Client.new(connect)
    client.send_preface
    client.send_frame("HEADERS es+eh 1 get")
    client.send_frame("HEADERS es+eh 3 get")
    until_statistics { |found| found[:waiting] == 1 }
    client.send_frame('HEADERS es+eh 5 82 86 04 03 "/up" 41 01 "a"')
    frame = client.read_frame
    frame = client.read_frame until frame.nil? || frame.type == "HEADERS"

    assert_equal 5, frame&.stream
    assert_equal 1, server.statistics[:waiting]
    client.close
  end

  # The first check computes until the other request has been sent.
  def test_health_checks_of_a_client_without_end_let_other_requests_begin
    served = Thread::Queue.new
    sent = false
    app = lambda do |env|
      served << env["PATH_INFO"]
      Heddle.without_preemption { Thread.pass until sent }
      compute
      [200, {}, []]
    end
    start(app)
    checks = "GET /up HTTP/1.1\r\nHost: a\r\n\r\n" * 100
    clients = Array.new(10) { connect }
    clients.each { |client| client.write(checks) }
    served.pop(timeout: PATIENCE)
    other = ask("/")
    sent = true
    read_answer(other)
    before = Array.new(served.size) { served.pop }.index("/")

    assert_operator before, :<, 500, "half of the health checks"
  ensure
    clients&.each(&:close)
  end

  def test_health_checks_that_wait_leave_other_requests_their_room
    start(held_checks, max_requests: 1)
    checks = Array.new(2) { ask("/up") }
    2.times { @arrived.pop(timeout: PATIENCE) }

    assert_match(%r{\AHTTP/1.1 200 .*/\z}m, read_answer(ask("/")))
  ensure
    @release.close
    checks&.each(&:close)
  end

  def test_health_checks_of_an_address_beyond_their_limit_are_ordinary_requests
    start(held_checks, max_requests: 1, max_connections: 400, trusted_proxies: [])
    checks = Array.new(34) { ask("/up") }
    until_statistics { |found| found[:waiting] == 1 }

    assert_equal 33, @arrived.size, "32 health checks, and max_requests"
  ensure
    @release.close
    checks&.each(&:close)
  end

  def test_health_checks_of_an_address_beyond_their_limit_are_ordinary_requests_over_http2
    start(held_checks, max_requests: 1, max_connections: 400, trusted_proxies: [])
    client = H2Client.new(connect)
    client.send_preface
    34.times { |i| client.send_frame("HEADERS es+eh #{(2 * i) + 1} :method=GET :scheme=http :path=/up :authority=a") }
    until_statistics { |found| found[:waiting] == 1 }

    assert_equal 33, @arrived.size, "32 health checks, and max_requests"
  ensure
    @release.close
    client&.close
  end

  def test_a_health_check_with_a_body_may_run_longer_than_its_body_may_take
    app, arrived, release = waiting_application("up")
    start(app, body_grace: 0.1)
    check = upload("/up", 'DATA es 1 "hello"')
    arrived.pop(timeout: PATIENCE)
    late = upload("/", 'DATA - 1 "hello, too"') # its time ends after the check's

    assert_includes response_of(late), "408"
    release << true

    assert_equal 0x88, response_of(check).ord, ":status 200 of HPACK's static table"
  ensure
    [check, late].each { |client| client&.close }
    release&.close
  end

  def test_health_checks_are_not_in_the_access_log
    serving(held) do
      read_answer(ask("/up"))
      read_answer(ask("/healthz"))
    end

    assert_match(%r{GET /healthz}, output.string)
    refute_match(%r{/up}, output.string)
  end

  def test_a_stop_accepts_connections_for_drain_delay_while_health_checks_fail
    start(held, drain_delay: 29, stop_timeout: 0)
    @release.close
    server.stop
    until_ok { read_all(ask("/up")).start_with?("HTTP/1.1 503 ") }

    assert_match(%r{\AHTTP/1.1 200 .*^connection: close\r\n.*/new\z}m, read_all(ask("/new")))
    assert_match(%r{\AHTTP/2 503 }, curl("/up", "--http2-prior-knowledge"))
    assert_match(%r{\AHTTP/2 200 }, curl("/new", "--http2-prior-knowledge"))
    refute_match(/503/, output.string, "a health check is not logged")
    server.stop(now: true)
    wait_for_end
  end

  def test_http2_clients_get_goaway_when_drain_delay_is_over
    start(held, drain_delay: 0.2, stop_timeout: 60)
    client = H2Client.new(connect)
    client.send_preface
    client.send_frame("HEADERS es+eh 1 get")
    @arrived.pop(timeout: PATIENCE)
    server.stop
    frame = client.read_frame
    frame = client.read_frame until frame.nil? || frame.type == "GOAWAY"

    assert_equal "NO_ERROR", frame&.error
    @release.close

    assert wait_for_end, "the running request was answered"
  end

  def test_without_drain_delay_a_stop_ends_at_once
    start(held)
    server.stop

    assert wait_for_end
  end

  private

  # Its head and the frame come together.
  def upload(path, frame)
    bytes = StringIO.new(+"".b)
    ["HEADERS eh 1 :method=POST :scheme=http :path=#{path} :authority=a", frame].each do |one|
      H2Client.new(bytes).send_frame(one)
    end
    H2Client.new(connect).tap do |client|
      client.send_preface
      client.send_bytes(bytes.string)
    end
  end

  # @return [String] the encoded fields
  def response_of(client)
    frame = client.read_frame
    frame = client.read_frame until frame.nil? || frame.type == "HEADERS"
    frame&.payload
  end

  def content_over_http2(socket, path)
    client = H2Client.new(socket)
    client.send_preface
    client.send_frame("HEADERS es+eh 1 :method=GET :scheme=http :path=#{path} :authority=a")
    frame = client.read_frame
    frame = client.read_frame until frame.nil? || frame.type == "DATA"
    frame&.payload
  end

  def until_ok
    deadline = now + PATIENCE
    until yield
      flunk "never" if now > deadline
      sleep 0.001
    end
  end
end
