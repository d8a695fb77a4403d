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

  def two_servers
    serve(echo) do |first|
      second = Heddle::Net::Sockets.new(first.scheduler, set:, &echo)
      second.stop_listening # opens it
      yield first, second
    ensure
      second&.close
    end
  end

  def test_idle_connections_go_on_elsewhere
    two_servers do |first, second|
      clients = Array.new(3) { first.connect }
      clients.each { |client| client.write("a") }

      assert_equal ["a"] * 3, clients.map { |client| client.readpartial(1) }
      until_true { first.sockets.idle == 3 }
      first.sockets.stop_listening

      assert first.sockets.hand_off_idle(@giving)
      assert_equal 0, first.sockets.connections
      clients.first.write("b") # while it is nobody's
      3.times { assert second.accept_handoff(@taking) }

      refute second.accept_handoff(@taking)
      assert_equal 3, second.connections
      clients.drop(1).each { |client| client.write("b") }

      assert_equal ["b"] * 3, clients.map { |client| client.readpartial(1) }
    end
  end

  def test_what_is_served_stays
    held = []
    serve(handing_over(held)) do |server|
      client = server.connect
      client.write("x")
      until_true { held.any? }

      assert server.sockets.hand_off_idle(@giving)
      assert_equal 1, server.sockets.connections
      held.each(&:close)
    end
  end

  def test_what_nobody_takes_stays_when_there_is_no_room
    serve(echo) do |server|
      @giving.setsockopt(:SOCKET, :SNDBUF, 1)
      clients = Array.new(60) { server.connect }
      until_true { server.sockets.connections == 60 }

      refute server.sockets.hand_off_idle(@giving)
      assert_operator server.sockets.connections, :>, 0
      clients.each(&:close)
    end
  end

  def test_it_is_told_when_nobody_is_there_to_take_them
    serve(echo) do |server|
      server.connect
      until_true { server.sockets.connections == 1 }
      @taking.close

      assert_raises(Errno::EPIPE) { server.sockets.hand_off_idle(@giving) }
      assert_equal 1, server.sockets.connections
    end
    @taking = @giving
  end

  def test_what_is_no_connection_is_thrown_away
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

  def test_one_that_is_full_leaves_them_to_others
    serve(echo, max_connections: 1) do |server|
      server.connect
      until_true { server.sockets.connections == 1 }

      refute server.sockets.accept_handoff(@taking)
    end
  end

  def test_all_that_wait_are_accepted_at_the_end
    serve(echo) do |server|
      server.sockets.pause_accept
      clients = Array.new(5) { server.connect.tap { |client| client.write("x") } }
      server.sockets.accept_rest
      server.listener.close

      assert_equal 5, server.sockets.connections
      assert_equal ["x"] * 5, clients.map { |client| client.readpartial(1) }
    end
  end

  def test_who_has_waited_for_less_than_so_long_is_kept
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

Heddle::TestHelpers.with_each_socket_set(HandOverTests)
