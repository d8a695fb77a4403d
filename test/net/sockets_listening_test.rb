# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# Who is accepted, and when nobody is.
module SocketsListeningTests
  def test_as_many_connections_as_allowed
    serve(echo, max_connections: 2) do |server|
      clients = Array.new(3) { server.connect }
      clients.each { |client| client.write("x") }
      clients.first(2).each { |client| assert_equal "x", client.readpartial(10) }
      10.times { sleep 0 }

      assert_equal 2, server.sockets.connections
      assert_nil clients.last.wait_readable(0.05)
      refute_predicate server.sockets, :accepting?
      clients.first.close

      assert_equal "x", clients.last.readpartial(10)
      assert_equal [2, 3], [server.sockets.connections, server.sockets.accepted]
    end
  end

  def test_accepted_tcp_sockets_probe_silent_peers
    tell = ->(connection) { connection.detach.then { |io| io.write(io.getsockopt(:SOCKET, :KEEPALIVE).bool.to_s) } }
    serve(tell) do |server|
      client = server.connect
      client.write("x")

      assert_equal "true", client.readpartial(10)
    end
  end

  def test_accepting_can_be_paused
    serve(echo) do |server|
      2.times { server.sockets.pause_accept }

      refute_predicate server.sockets, :accepting?
      client = server.connect
      client.write("x")

      assert_nil client.wait_readable(0.05)
      assert_equal 0, server.sockets.accepted
      server.sockets.resume_accept

      assert_equal "x", client.readpartial(10)
      assert_predicate server.sockets, :accepting?
    end
  end

  def test_a_listener_that_is_closed_behind_our_back
    serve(echo) do |server|
      client = server.connect
      client.write("x")
      client.readpartial(1)
      server.listener.close
      second = TCPServer.new("127.0.0.1", 0) # most likely with the same descriptor
      server.sockets.listen(second)
      other = TCPSocket.new("127.0.0.1", second.local_address.ip_port)
      other.write("y")

      assert_equal "y", other.readpartial(1)
      client.write("x")

      assert_equal "x", client.readpartial(1)
    ensure
      second&.close
    end
  end

  def test_several_listeners_of_several_kinds
    Dir.mktmpdir do |folder|
      unix = UNIXServer.new(File.join(folder, "socket"))
      serve(echo) do |server|
        server.sockets.listen(unix)
        clients = Array.new(5) { [server.connect, UNIXSocket.new(unix.path)] }.flatten
        clients.each { |client| client.write("x") }

        assert_equal ["x"] * 10, clients.map { |client| client.readpartial(1) }
        clients.each(&:close)
        until_true { server.sockets.connections == 0 }
      end
      unix.close
    end
  end

  def test_a_storm_of_connections
    serve(echo) do |server|
      server.listener.listen(1024)
      clients = Array.new(400) { server.connect }
      clients.each { |client| client.write("x") }

      assert_equal 400, clients.sum { |client| client.readpartial(1).size }
      assert_equal 400, server.sockets.accepted
      clients.each(&:close)
      until_true { server.sockets.connections == 0 }
    end
  end
end
Heddle::TestHelpers.with_each_socket_set(SocketsListeningTests)
