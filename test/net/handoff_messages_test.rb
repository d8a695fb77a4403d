# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# Idle connections go from one worker to another, and no client notices.
module HandOverTests
  def setup
    super
    @giving, @taking = UNIXSocket.pair(:SEQPACKET)
  end

  def teardown
    [@giving, @taking].each(&:close)
    super
  end

  def two_servers(**limits)
    serve(echo) do |first|
      second = sockets_with(first.scheduler, echo, **limits)
      second.stop_listening # opens it
      yield first, second
    ensure
      second&.close
    end
  end

  def test_idle_connections_are_served_by_the_other_process
    two_servers do |first, second|
      clients = Array.new(3) { first.connect.ask("a") }

      assert_equal ["a"] * 3, clients.map(&:answer)
      until_true { first.sockets.idle == 3 }
      first.sockets.stop_listening

      assert first.sockets.hand_off_idle(@giving)
      assert_equal 0, first.sockets.connections
      clients.first.ask("b") # while it is nobody's
      3.times { assert second.accept_handoff(@taking) }

      refute second.accept_handoff(@taking)
      assert_equal 3, second.connections
      clients.drop(1).each { |client| client.ask("b") }

      assert_equal ["b"] * 3, clients.map(&:answer)
    end
  end

  def test_an_address_gets_twice_its_share_of_connections_by_handoffs_and_no_more
    two_servers(max_connections: 64) do |first, second|
      clients = Array.new(33) { first.connect }
      until_true { first.sockets.idle == 33 }

      assert first.sockets.hand_off_idle(@giving)
      33.times { assert second.accept_handoff(@taking) }

      assert_equal 32, second.connections
      assert_equal 1, second.refused
      clients.each(&:close)
    end
  end

  def test_connections_with_a_running_request_are_not_handed_off
    held = []
    serve(handing_over(held)) do |server|
      server.connect.ask
      until_true { held.any? }

      assert server.sockets.hand_off_idle(@giving)
      assert_equal 1, server.sockets.connections
      held.each(&:close)
    end
  end

  def test_connections_stay_when_the_handoff_socket_is_full
    serve(echo) do |server|
      @giving.setsockopt(:SOCKET, :SNDBUF, 1)
      clients = Array.new(60) { server.connect }
      until_true { server.sockets.connections == 60 }

      refute server.sockets.hand_off_idle(@giving)
      assert_operator server.sockets.connections, :>, 0
      clients.each(&:close)
    end
  end

  def test_handing_off_raises_when_no_process_receives
    serve(echo) do |server|
      server.connect
      until_true { server.sockets.connections == 1 }
      @taking.close

      assert_raises(Errno::EPIPE) { server.sockets.hand_off_idle(@giving) }
      assert_equal 1, server.sockets.connections
    end
    @taking = @giving
  end

  def test_messages_without_a_connection_are_discarded
    serve(echo) do |server|
      io = File.open(File::NULL)
      @giving.sendmsg("of another version", 0, nil, Socket::AncillaryData.unix_rights(io))
      @giving.send("nothing attached", 0)
      2.times { assert server.sockets.accept_handoff(@taking) }

      assert_equal 0, server.sockets.connections
    ensure
      io.close
    end
  end

  def test_sockets_at_their_connection_limit_accept_no_handoff
    serve(echo, max_connections: 1) do |server|
      server.connect
      until_true { server.sockets.connections == 1 }

      refute server.sockets.accept_handoff(@taking)
    end
  end

  def test_sockets_that_are_full_of_handoffs_make_room_for_a_client
    two_servers(max_connections: 1) do |first, second|
      listener = TCPServer.new("127.0.0.1", 0)
      second.listen(listener)
      idle = first.connect
      until_true { first.sockets.connections == 1 }
      first.sockets.hand_off_idle(@giving)

      assert second.accept_handoff(@taking)
      refute second.accept_handoff(@taking)
      client = Heddle::TestHelpers::SocketsCase::Server.new(second, listener).connect.ask("new")

      assert_equal ["new", nil], [client.answer, idle.read(1)]
    ensure
      listener.close
    end
  end

  def test_all_that_wait_are_accepted_at_the_end
    serve(echo) do |server|
      # While this fiber blocks the thread, the loop accepts nobody.
      clients = Fiber.blocking { Array.new(5) { server.connect.ask } }

      assert_equal 0, server.sockets.connections
      server.sockets.accept_rest
      server.listener.close

      assert_equal 5, server.sockets.connections
      assert_equal ["x"] * 5, clients.map(&:answer)
    end
  end

  def test_shutdown_idle_keeps_connections_idle_for_less_than_the_given_time
    serve(echo) do |server|
      client = server.connect
      until_true { server.sockets.connections == 1 }
      server.sockets.shutdown_idle(30)

      assert_equal 1, server.sockets.connections
      server.sockets.shutdown_idle

      assert_nil client.read(1)
    end
  end
end

Heddle::TestHelpers.with_each_event_set(HandOverTests)
