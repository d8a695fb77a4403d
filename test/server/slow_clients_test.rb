# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# Clients that send or read too slowly are cut off in time by the limit for it, one client or a hundred, and other
# clients are served meanwhile.
class SlowClientsTest < Minitest::Test
  include ServerHelpers

  LIMIT = 0.5
  # Also for all first bytes, without which a connection ends without words.
  FIRST = 2
  FAR = 300
  # Seconds of each limit in a test that is about another one.
  OTHERS = { head_timeout: FAR, body_grace: FAR, write_timeout: FAR, idle_timeout: FAR, linger_timeout: 0.1 }.freeze
  LARGE = "x" * 20_000_000
  COUNT = 50

  def app
    lambda do |env|
      case env["PATH_INFO"]
      when "/large" then [200, {}, [LARGE]]
      when "/each" then [200, {}, Array.new(200) { LARGE[0, 100_000] }.each]
      when "/stream" then [200, {}, ->(stream) { 200.times { stream << LARGE[0, 100_000] } && stream.close }]
      else [200, {}, [env["rack.input"].read.to_s.bytesize.to_s]]
      end
    end
  end

  HEAD = "GET / HTTP/1.1\r\nHost: a\r\nX-A: #{"b" * 5_000}\r\n\r\n".freeze

  def test_a_head_that_comes_byte_by_byte_is_answered_with_a_timeout
    cut_off(head_timeout: FIRST) do |sockets|
      trickle(sockets, HEAD)
      answered(sockets, "408")
    end
  end

  def test_a_head_that_stops_half_way_is_answered_with_a_timeout
    cut_off(head_timeout: FIRST) do |sockets|
      all_send(sockets, HEAD[0, 30])
      answered(sockets, "408")
    end
  end

  def test_connections_that_send_nothing_end_without_words
    cut_off(idle_timeout: LIMIT) do |sockets|
      sockets.each { |socket| assert_equal "", ended(socket) }
    end
  end

  def test_connections_that_never_sent_a_byte_have_the_time_of_a_head
    cut_off(head_timeout: LIMIT) do |sockets|
      sockets.each { |socket| assert_equal "", ended(socket) }
    end
  end

  def test_connections_that_send_nothing_more_end_without_words
    cut_off(idle_timeout: LIMIT) do |sockets|
      all_send(sockets, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      sockets.each { |socket| assert_match(%r{\AHTTP/1.1 200 .*\r\n\r\n0\z}m, ended(socket)) }
    end
  end

  def test_a_body_that_comes_byte_by_byte_is_answered_with_a_timeout
    cut_off(body_grace: LIMIT, body_rate: 1_000) do |sockets|
      trickle(sockets, "x" * 5_000, first: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n")
      answered(sockets, "408")
    end
  end

  def test_a_large_body_that_comes_byte_by_byte_is_answered_with_a_timeout
    cut_off(body_grace: LIMIT, body_rate: 1_000) do |sockets|
      trickle(sockets, "x" * 5_000, first: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n")
      answered(sockets, "408")
    end
  end

  def test_a_chunked_body_that_comes_byte_by_byte_is_answered_with_a_timeout
    cut_off(body_grace: LIMIT, body_rate: 1_000) do |sockets|
      trickle(sockets, "1\r\nx\r\n" * 800, first: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
      answered(sockets, "408")
    end
  end

  def test_a_chunk_whose_extension_never_ends_is_cut_off
    cut_off(body_grace: LIMIT, body_rate: 100_000) do |sockets|
      trickle(sockets, "x" * 4_000, first: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;")
      answered(sockets, "408")
    end
  end

  %w[/large /each /stream].each do |path|
    define_method(:"test_a_client_that_reads_nothing_of_#{path.delete("/")}_is_cut_off") do
      cut_off(count: 5, write_timeout: LIMIT) do |sockets|
        all_send(sockets, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
        until_true { sockets.all? { |socket| socket.wait_readable(0) } }
        all_gone
        sockets.each { |socket| assert_operator received(socket), :<, LARGE.bytesize }
      end
    end

    define_method(:"test_a_client_that_reads_a_byte_at_a_time_of_#{path.delete("/")}_is_cut_off") do
      cut_off(count: 5, write_timeout: LIMIT) do |sockets|
        all_send(sockets, "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
        until_true { sockets.all? { |socket| socket.wait_readable(0) } }
        all_gone { sockets.each { |socket| socket.read_nonblock(1, exception: false) } }
      end
    end
  end

  private

  # Serves the slow clients and, all the while, one that is not slow.
  def cut_off(count: COUNT, **limits)
    serving(app, access_log: false, **OTHERS, **limits) do
      sockets = Array.new(count) { connect }
      until_true { server.statistics[:accepted] >= count }
      began = now
      witness = Thread.new { witness_requests }
      yield sockets

      all_gone
      assert_operator now - began, :>=, LIMIT * 0.9
      assert_operator now - began, :<, LIMIT + 10, "cut off in time"
      witness[:done] = true
      slowest = witness.value

      assert_operator slowest, :<, 10, "seconds that another client had to wait"
    ensure
      sockets&.each(&:close)
    end
  end

  # @return [Float] seconds of the slowest of many requests
  def witness_requests
    slowest = 0
    until Thread.current[:done]
      began = now
      raise "not served" unless get("/").body == "0"

      slowest = [slowest, now - began].max
      sleep 0.01 # the slow ones need the processor, too
    end
    slowest
  end

  def all_send(sockets, bytes) = sockets.each { |socket| socket.write(bytes) }

  # Sends bytes one at a time to all, as long as one of them is still taken.
  def trickle(sockets, bytes, first: "")
    all_send(sockets, first)
    open = sockets.dup
    bytes.each_char do |byte|
      open.select! { |socket| alive?(socket) && socket.write(byte) }
      break if open.empty?

      # A slow client is slow by itself.
      sleep 0.005
    end

    assert_empty open, "clients that could send all they had"
  end

  def alive?(socket) = !socket.wait_readable(0)

  def answered(sockets, status)
    sockets.each { |socket| assert_match(%r{\AHTTP/1\.1 #{status} .*connection: close}m, ended(socket)) }
  end

  def ended(socket) = Timeout.timeout(PATIENCE) { socket.read }

  # What is on its way when the connection is cut.
  def received(socket)
    bytes = 0
    Timeout.timeout(PATIENCE) { loop { bytes += socket.readpartial(1_000_000).bytesize } }
  rescue EOFError, SystemCallError
    bytes
  end

  # Until the server has no connection: the witness's come and go, and a single one that is left may be a slow client's.
  def all_gone
    until_true do
      yield if block_given?
      server.statistics[:connections] == 0
    end
  end

  def until_true
    deadline = now + PATIENCE
    until yield
      flunk "#{server.statistics} after #{PATIENCE} s" if now > deadline

      sleep 0.005
    end
  end
end
