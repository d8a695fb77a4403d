# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"
require "heddle/net/networks"

# Which connections are accepted, and when none is.
module SocketsListeningTests
  def client_of(listener) = Heddle::TestHelpers::SocketsCase::Server.new(nil, listener).connect

  def test_as_many_connections_as_allowed
    serve(echo, max_connections: 2) do |server|
      clients = Array.new(3) { server.connect }
      clients.each(&:ask)
      clients.first(2).each { |client| assert_equal "x", client.answer }
      10.times { sleep 0 }

      assert_equal 2, server.sockets.connections
      assert_nil clients.last.wait_readable(0.05)
      refute_predicate server.sockets, :accepting?
      clients.first.close

      assert_equal "x", clients.last.answer
      assert_equal [2, 3], [server.sockets.connections, server.sockets.accepted]
    end
  end

  def test_many_clients_of_a_listener_do_not_delay_those_of_another
    2.times do |other|
      listeners = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
      clients = Array.new(200) { client_of(listeners[1 - other]).ask("crowd") }
      clients << client_of(listeners[other]).ask("other")
      seen = []
      answer = lambda do |exchange|
        seen << said(exchange)
        reply(exchange, seen.last)
      end
      serve(answer, listener: listeners.first) do |server|
        server.sockets.listen(listeners.last)
        assert_equal "other", clients.last.answer
      end

      assert_operator seen.index("other"), :<, 150
    end
  end

  # The first connection is used later than the second one.
  def test_longest_idle_connection_is_closed_for_a_new_one_at_the_limit
    serve(echo, max_connections: 2) do |server|
      clients = Array.new(2) { server.connect.tap { |client| client.ask.answer } }
      later = now + 0.02 # more than the coarse clock's tick
      until_true { now > later }
      clients.first.ask.answer
      other = server.connect

      assert_equal "z", other.ask("z").answer
      assert_nil clients.last.read(1)
      assert_equal "x", clients.first.ask.answer
      assert_equal [2, 1], [server.sockets.connections, server.sockets.closed_for_others]
    end
  end

  def test_busy_connections_are_not_closed_for_new_ones
    busy = Thread::Queue.new
    serve(handing_over(busy), max_connections: 1) do |server|
      server.connect.ask
      exchange = busy.pop
      other = server.connect

      assert_nil other.wait_readable(1.5)
      assert_equal [1, 0], [server.sockets.accepted, server.sockets.closed_for_others]
      exchange.close
    end
  end

  # An IPv4 address may have a quarter of max_connections, and 16 at least, here also in the form of IPv6.
  def test_one_address_has_a_part_of_the_connections
    ["127.0.0.1", "::"].each do |address|
      serve(echo, max_connections: 100) do |server|
        listener = TCPServer.new(address, 0)
        server.sockets.listen(listener)
        clients = Array.new(26) { client_of(listener) }
        clients.each(&:ask)

        assert_equal "x" * 25, clients.first(25).map(&:answer).join
        assert_predicate clients.last, :cut_off?
        assert_equal [25, 1], [server.sockets.connections, server.sockets.refused]
        clients.first.close
        until_true { server.sockets.connections == 24 }
        clients << client_of(listener)

        assert_equal "x", clients.last.ask.answer
      ensure
        clients&.each(&:close)
        listener&.close
      end
    end
  end

  def test_trusted_proxy_may_have_all_connections
    serve(echo, max_connections: 20, proxies: Heddle::Net::Networks.new(["loopback"])) do |server|
      clients = Array.new(20) { server.connect.ask }

      assert_equal "x" * 20, clients.map(&:answer).join
      clients.each(&:close)
    end
  end

  def test_accepted_tcp_sockets_probe_silent_peers
    tell = ->(exchange) { exchange.detach.then { |io| io.write(io.getsockopt(:SOCKET, :KEEPALIVE).bool.to_s) } }
    serve(tell) do |server|
      assert_equal "true", server.connect.ask.readpartial(10)
    end
  end

  def test_a_listener_that_is_closed_behind_our_back
    serve(echo) do |server|
      client = server.connect
      client.ask.answer
      server.listener.close
      second = TCPServer.new("127.0.0.1", 0) # most likely with the same descriptor
      server.sockets.listen(second)

      assert_equal "y", client_of(second).ask("y").answer
      assert_equal "x", client.ask.answer
    ensure
      second&.close
    end
  end

  def test_several_listeners_of_several_kinds
    Dir.mktmpdir do |folder|
      unix = UNIXServer.new(File.join(folder, "socket"))
      serve(echo) do |server|
        server.sockets.listen(unix)
        clients = Array.new(5) { [server.connect, client_of(unix)] }.flatten
        clients.each(&:ask)

        assert_equal ["x"] * 10, clients.map(&:answer)
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
      clients.each(&:ask)

      assert_equal 400, clients.sum { |client| client.answer.size }
      assert_equal 400, server.sockets.accepted
      clients.each(&:close)
      until_true { server.sockets.connections == 0 }
    end
  end
end
Heddle::TestHelpers.with_each_event_set(SocketsListeningTests)
