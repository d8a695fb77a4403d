# frozen_string_literal: true

# test: each selector
# test: sanitize
# test: smoke

require "heddle/rack"
require_relative "support/sockets_case"

# How connections end, who takes them over, and their addresses.
module ConnectionTests
  # More than any socket buffer takes.
  LARGE = 20_000_000

  # A request whose body the handler reads while it comes.
  BEGUN = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{LARGE}\r\n\r\n".freeze

  def streaming = engine(body_limit: LARGE, stream_bodies: true)

  def test_a_reset_raises_in_reader_and_writer
    errors = {}
    handler = lambda do |exchange|
      reader = Fiber.schedule { errors[:read] = error_of(StandardError) { loop { exchange.body.read } } }
      errors[:write] = error_of(Heddle::ClientGoneError) { exchange.write("x" * LARGE) && exchange.drain }
      until_true { !reader.alive? }
    end
    serve(handler, service: streaming) do |server|
      client = server.connect
      client.write(BEGUN)
      until_true { client.wait_readable(0) }
      reset(client)
      until_true { errors.size == 2 && server.sockets.connections == 0 }
    end
    assert_match(/ECONNRESET|EPIPE|closed/, errors[:read].message)
    assert_match(/ECONNRESET|EPIPE/, errors[:write].message)
  end

  def test_a_reset_never_looks_like_the_end_of_input
    results = []
    handler = lambda do |exchange|
      exchange.write("go")
      # The kernel tells of a reset once: here it tells who writes.
      results << error_of(Heddle::ClientGoneError) { loop { exchange.write("x" * 100_000) } }
      3.times { results << error_of(Heddle::ClientGoneError) { exchange.fill(1) } }
    end
    serve(handler, service: streaming) do |server|
      client = server.connect
      client.write(BEGUN)
      client.readpartial(2)
      reset(client)
      until_true { results.size == 4 }
    end
    results.each { |error| assert_match(/ECONNRESET|EPIPE/, error.message) }
  end

  def test_a_peer_that_half_closed_gets_its_response
    serve(->(exchange) { reply(exchange, "response " * 1_000_000) }) do |server|
      client = server.connect.ask
      client.close_write

      assert_equal 9_000_000, client.answer.bytesize
      assert_nil client.read(1)
    end
  end

  def test_the_last_request_of_a_closed_unix_peer_is_served
    Dir.mktmpdir do |folder|
      heard = []
      handler = ->(exchange) { heard << said(exchange) }
      serve(handler, listener: UNIXServer.new(File.join(folder, "socket"))) do |server|
        server.connect.ask("bye").close
        server.connect.close
        until_true { heard.any? && server.sockets.connections == 0 && server.sockets.accepted == 2 }
      end
      assert_equal ["bye"], heard
    end
  end

  def test_an_interrupted_wait_leaves_a_connection_that_works
    seen = []
    handler = lambda do |exchange|
      body = exchange.body
      seen << body.read
      seen << error_of(Timeout::Error) { Timeout.timeout(0.02) { body.read } }.class
      exchange.write("go on")
      seen << body.read
    end
    serve(handler, service: streaming) do |server|
      client = server.connect
      client.write(BEGUN, "x")

      assert_equal "go on", client.readpartial(10)
      client.write("yes")
      until_true { seen.size == 3 }
    end
    assert_equal ["x", Timeout::Error, "yes"], seen
  end

  def test_a_cancelled_runner_ends_and_its_connection_with_it
    serving = nil
    handler = lambda do |exchange|
      serving = Fiber.current
      reply(exchange, "x" * (said(exchange) == "large" ? LARGE : 1))
      exchange.drain unless exchange.closed?
      sleep if said(exchange) == "large"
    end
    serve(handler) do |server|
      client = server.connect
      client.ask("large")
      until_true { serving && client.wait_readable(0) }
      server.scheduler.interrupt(serving, Heddle::Cancelled.new)
      client.close
      until_true { server.sockets.connections == 0 }

      assert_equal "x", server.connect.ask.answer
    end
  end

  def test_a_detached_connection_is_a_socket_with_what_was_not_read
    taken = nil
    serve(->(exchange) { taken = exchange.detach }) do |server|
      client = server.connect
      client.write(Heddle::TestHelpers::HTTPClient.request, "cdef")
      until_true { taken }

      assert_equal 0, server.sockets.connections
      assert_instance_of TCPSocket, taken
      assert_predicate taken.getsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY), :bool
      assert_equal "cdef", taken.readpartial(100)
      client.write("more")

      assert_equal "more", taken.readpartial(100)
      taken.write("answer")

      assert_equal "answer", client.readpartial(100)
      taken.close
    end
  end

  def test_a_unix_connection
    Dir.mktmpdir do |folder|
      taken = nil
      seen = nil
      handler = lambda do |exchange|
        seen = exchange.remote_address
        taken = exchange.detach
      end
      serve(handler, listener: UNIXServer.new(File.join(folder, "socket"))) do |server|
        server.connect.ask
        until_true { taken }

        assert_instance_of UNIXSocket, taken
        taken.close
      end
      assert_equal "unix", seen
    end
  end

  def test_addresses
    ["127.0.0.1", "0.0.0.0", "::1", "::"].each do |host|
      seen = nil
      serve(->(exchange) { seen = addresses_of(exchange) }, listener: TCPServer.new(host, 0)) do |server|
        client = TCPSocket.new(host.include?(":") ? "::1" : "127.0.0.1", server.port)
        client.write("GET / HTTP/1.0\r\n\r\n")
        until_true { seen }
        address = client.local_address.ip_address

        assert_equal [address, address.sub(/.*:.*/) { "[#{_1}]" }, server.port.to_s], seen
        assert_predicate seen[0], :frozen?
      end
    rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
      assert_includes host, ":", "only IPv6 may be missing"
    end
  end
end
Heddle::TestHelpers.with_each_event_set(ConnectionTests)
