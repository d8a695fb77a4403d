# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "support/web_socket_client"
require_relative "server_helpers"

# Pipelined requests of HTTP/1.1, some of which end the connection or switch its protocol.
class ServerPipeliningTest < Minitest::Test
  include ServerHelpers

  LARGE = ("y" * 100_000).freeze
  # Ways to send a body for a path. The last one is in memory no more.
  BODIES = {
    "GET" => ["GET", "", ""],
    "length" => ["POST", "Content-Length: 5\r\n", "12345"],
    "chunked" => ["POST", "Transfer-Encoding: chunked\r\n", "2\r\n12\r\n3\r\n345\r\n0\r\n\r\n"],
    "expect" => ["POST", "Content-Length: 5\r\nExpect: 100-continue\r\n", "12345"],
    "streamed" => ["POST", "Content-Length: 5\r\n", "12345"],
    "large" => ["POST", "Content-Length: 300000\r\n", "x" * 300_000]
  }.freeze
  STREAMED = %w[/streamed /large].freeze

  # Answers with the path and the size of the body.
  ECHO = lambda do |env|
    path = env["PATH_INFO"]
    text = "#{path} #{env["rack.input"] ? env["rack.input"].read.to_s.bytesize : 0}"
    next [200, { "content-length" => text.bytesize.to_s }, [text]] unless path.start_with?(*STREAMED)

    [200, {}, lambda { |stream|
      stream.write(text)
      stream.write(" ") && stream.write(LARGE)
      stream.close
    }]
  end

  Response = Struct.new(:status, :head, :body) do
    def last? = head.match?(/^connection: close/i)
  end

  def request(path, kind = "GET", fields = "")
    method, own, body = BODIES.fetch(kind)
    "#{method} #{path} HTTP/1.1\r\nHost: a\r\n#{fields}#{own}\r\n#{body}"
  end

  # @return [Response, nil] the next final one; nil: the server has ended
  def read_response(socket)
    head = socket.gets("\r\n\r\n") or return
    status = head[/\A\S+ (\d+)/, 1].to_i
    return read_response(socket) if status == 100

    body = head.match?(/^transfer-encoding: chunked/i) ? read_chunks(socket) : +""
    body << socket.read(head[/^content-length: (\d+)/i, 1].to_i) if body.empty? && status != 101
    Response.new(status, head, body)
  end

  def read_chunks(socket)
    body = +""
    until (size = socket.gets.hex).zero?
      body << socket.read(size)
      socket.read(2)
    end
    socket.read(2)
    body
  end

  # Writes meanwhile: a server that waits until its responses are read reads no more requests.
  def send_ahead(bytes)
    socket = connect
    writer = Thread.new do
      socket.write(bytes)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # the server has closed
    end
    Timeout.timeout(PATIENCE) { yield socket, writer }
  ensure
    writer&.join
    socket&.close
  end

  def test_responses_keep_the_order_whatever_the_bodies
    serving(ECHO, lint: false, stream_bodies: STREAMED) do
      clients = Array.new(4) { |seed| Thread.new { ask_in_disorder(seed) } }

      clients.each { |client| assert_equal(*client.value) }
    end
  end

  # @return [Array(Array<String>, Array<String>)] what is expected, and what was answered
  def ask_in_disorder(seed)
    random = Random.new(seed)
    asked = Array.new(120) { |i| [(kind = BODIES.keys.sample(random:)), "/#{kind}/#{i}"] }
    sizes = { "GET" => 0, "large" => 300_000 }
    expected = asked.map { |kind, path| "#{path} #{sizes.fetch(kind, 5)}" }
    send_ahead(asked.map { |kind, path| request(path, kind) }.join) do |socket|
      [expected, asked.map { read_response(socket).body.split(" ", 3).first(2).join(" ") }]
    end
  end

  def test_requests_after_connection_close_are_not_served
    called = 0
    app = ->(env) { (called += 1) && ECHO.call(env) }
    requests = Array.new(40) { |i| request("/#{i}", i.even? ? "GET" : "chunked") }
    requests[20] = request("/20", "GET", "Connection: close\r\n")
    serving(app, lint: false) do
      send_ahead(requests.join) do |socket|
        responses = Array.new(21) { read_response(socket) }

        assert_equal((0..20).map { |i| "/#{i} #{i.even? ? 0 : 5}" }, responses.map(&:body))
        assert_equal [20], responses.each_index.select { |i| responses[i].last? }
        assert_nil read_response(socket)
        assert_equal 21, called
      end
    end
  end

  # The application gets what was read of what follows.
  def test_a_request_that_hijacks_the_connection_comes_after_the_responses_before_it
    app = lambda do |env|
      next ECHO.call(env) unless env["PATH_INFO"] == "/hijack"

      socket = env["rack.hijack"].call
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n#{socket.read(5)}")
      socket.close
    end
    serving(app, lint: false) do
      send_ahead("#{Array.new(20) { |i| request("/#{i}") }.join}#{request("/hijack")}after") do |socket|
        assert_equal [*Array.new(20) { |i| "/#{i} 0" }, "after", nil], Array.new(22) { read_response(socket)&.body }
      end
    end
  end

  def test_a_web_socket_begins_after_the_responses_before_it
    echo = Class.new { def on_message(client, message) = client.write(message) }
    app = lambda do |env|
      next ECHO.call(env) unless env["rack.upgrade?"] == :websocket

      env["rack.upgrade"] = echo.new
      [101, {}, []]
    end
    frame = WebSocketClient.allocate.frame(1, "hello", mask: "abcd")
    serving(app, lint: false) do
      ahead = Array.new(20) { |i| request("/#{i}", "length") }.join
      fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
      send_ahead("#{ahead}#{request("/socket", "GET", fields)}#{frame}") do |socket|
        assert_equal Array.new(20) { |i| "/#{i} 5" }, Array.new(20) { read_response(socket).body }
        assert_equal 101, read_response(socket).status
        assert_equal "\x81\x05hello".b, socket.read(7)
      end
    end
  end

  def test_100_continue_comes_behind_the_responses_before_it
    serving(ECHO, lint: false) do
      ahead = Array.new(20) { |i| request("/#{i}") }.join
      socket = connect
      socket.write(ahead + request("/body", "expect").delete_suffix("12345"))
      heads = Timeout.timeout(PATIENCE) { Array.new(20) { read_response(socket).body } + [socket.gets("\r\n\r\n")] }
      socket.write("12345#{request("/last")}")

      assert_equal [*Array.new(20) { |i| "/#{i} 0" }, "HTTP/1.1 100 Continue\r\n\r\n"], heads
      assert_equal ["/body 5", "/last 0"], Timeout.timeout(PATIENCE) { Array.new(2) { read_response(socket).body } }
    ensure
      socket&.close
    end
  end

  # No other protocol begins where an application does not take it: the requests that follow are served.
  def test_an_unhandled_upgrade_changes_nothing
    fields = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    serving(ECHO, lint: false) do
      send_ahead(request("/1") + request("/2", "length", fields) + request("/3")) do |socket|
        assert_equal ["/1 0", "/2 5", "/3 0"], Array.new(3) { read_response(socket).body }
      end
    end
  end

  def test_a_preface_behind_a_request_is_a_bad_request
    serving(ECHO, lint: false) do
      send_ahead("#{request("/1")}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") do |socket|
        first, second = Array.new(2) { read_response(socket) }

        assert_equal [200, false, 505, true], [first.status, first.last?, second.status, second.last?]
      end
    end
  end

  # Others are served meanwhile, and afterwards nothing is left of those that were not answered.
  def test_clients_that_leave_leave_nothing
    serving(ECHO, lint: false) do
      kept = connect
      30.times do |i|
        socket = connect
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) if i.even?
        socket.write(Array.new(100) { |n| request("/#{n}", %w[GET length chunked].fetch(n % 3)) }.join)
        socket.readpartial(100) if i % 3 == 0
        socket.close
        kept.write(request("/kept"))

        assert_equal "/kept 0", Timeout.timeout(PATIENCE) { read_response(kept).body }
      end
      found = until_statistics { |statistics| statistics[:connections] == 1 }

      assert_equal [0, 0], found.values_at(:running, :waiting)
      kept.close
    end
  end
end
