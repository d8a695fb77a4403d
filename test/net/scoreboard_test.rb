# frozen_string_literal: true

# test: sanitize

require "tempfile"
require_relative "support/sockets_case"
require "heddle/web_socket"
require "support/web_socket_client"

# How workers tell each other how busy they are.
class BoardTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  Scoreboard = Heddle::Net::Scoreboard

  def test_slots_are_given_out_and_taken_back
    scoreboard = Scoreboard.new(2)

    assert_equal 2, scoreboard.slots
    assert_nil scoreboard.read(0)
    assert_equal [0, 1, nil], [scoreboard.claim(1, 0), scoreboard.claim(1, 1), scoreboard.claim(1, 2)]
    assert_equal({ generation: 1, index: 1, pid: 0, accepting: false, in_flight: 0, connections: 0, waiting: 0,
                   reserve: false, limit: nil, lag: 0.0, busy_for: nil, stuck_for: nil, accepted: 0, requests: 0 },
                 scoreboard.read(1))
    scoreboard.write_load(1, 0.25, 7, 16)

    assert_equal [0.25, 7, 16], scoreboard.read(1).values_at(:lag, :waiting, :limit)
    scoreboard.free(1)

    assert_nil scoreboard.read(1)
    assert_equal 1, scoreboard.claim(2, 5)
    assert_equal [2, 5, nil, 0], scoreboard.read(1).values_at(:generation, :index, :limit, :waiting)
  end

  def test_mistakes
    assert_raises(ArgumentError) { Scoreboard.new(0) }
    assert_raises(ArgumentError) { Scoreboard.new(Scoreboard::MAX_SLOTS + 1) }
    scoreboard = Scoreboard.new(1)

    assert_raises(ArgumentError) { scoreboard.read(1) }
    assert_raises(ArgumentError) { scoreboard.free(1) }
    assert_raises(ArgumentError) { scoreboard.claim(0, 0) }
    assert_raises(IOError) { Scoreboard.allocate.slots }
  end

  def test_another_process_sees_the_same_by_its_descriptors
    scoreboard = Scoreboard.new(3)
    scoreboard.claim(4, 2)
    other = Scoreboard.for_fd(*scoreboard.descriptors.map { |descriptor| copy_of(descriptor) })

    assert_equal [3, 4], [other.slots, other.read(0)[:generation]]
    other.free(0)

    assert_nil scoreboard.read(0)
  end

  def test_a_file_that_is_not_a_scoreboard_is_rejected
    reader, writer = IO.pipe
    file = Tempfile.create("scoreboard")
    file.write("x" * 1_000)
    file.flush
    [file, File.open(File::NULL)].each do |io|
      io.autoclose = false
      assert_raises(Errno::EPROTO) { Scoreboard.for_fd(io.fileno, copy_of(reader.fileno)) }
    end
  ensure
    [reader, writer].each(&:close)
    File.unlink(file.path)
  end

  # Of a descriptor, which is the scoreboard's then.
  def copy_of(descriptor)
    copy = IO.for_fd(descriptor, autoclose: false).dup
    copy.autoclose = false
    copy.fileno
  end

  # As those of one process are, in mode fiber with several threads.
  def test_several_loops_with_one_slot_show_their_requests_together
    scoreboard = Scoreboard.new(1)
    slot = scoreboard.claim(1, 0)
    held = Thread::Queue.new
    hold = ->(_exchange) { held.pop }
    serve(hold) do |server|
      listener = TCPServer.new("127.0.0.1", 0)
      other = sockets_with(server.scheduler, hold)
      other.listen(listener)
      [server.sockets, other].each { |sockets| sockets.join(scoreboard, slot) }
      clients = [server, Server.new(other, listener)].map(&:connect)
      clients.each(&:ask)
      until_true { held.num_waiting == 2 }

      assert_equal 2, scoreboard.read(slot)[:in_flight]
      2.times do |done|
        held << true
        until_true { server.sockets.busy + other.busy == 1 - done }

        assert_equal 1 - done, scoreboard.read(slot)[:in_flight]
      end
    ensure
      held.close
      other&.close
      listener&.close
    end
  end

  def test_a_full_or_closed_loop_does_not_hide_that_another_loop_of_its_slot_accepts
    scoreboard = Scoreboard.new(1)
    slot = scoreboard.claim(1, 0)
    serve(echo) do |server|
      listener = TCPServer.new("127.0.0.1", 0)
      other = sockets_with(server.scheduler, echo, max_connections: 1)
      other.listen(listener)
      [server.sockets, other].each { |sockets| sockets.join(scoreboard, slot) }
      clients = Array.new(2) { Server.new(other, listener).connect }
      until_true { !other.accepting? }

      assert scoreboard.read(slot)[:accepting]
      other.close

      assert_equal [true, 0], scoreboard.read(slot).values_at(:accepting, :connections)
      server.sockets.stop_listening

      refute scoreboard.read(slot)[:accepting]
    ensure
      clients&.each(&:close)
      listener&.close
    end
  end

  # They are rejected in the tick in which the one before them ends.
  def test_requests_that_have_waited_too_long_are_no_longer_shown
    scoreboard = Scoreboard.new(1)
    slot = scoreboard.claim(1, 0)
    release = Thread::Queue.new
    handler = lambda do |exchange|
      release.pop
      computing = Heddle::MonotonicClock.now + 1.5
      nil while Heddle::MonotonicClock.now < computing
      exchange.reject(500, "it has computed")
    end
    serve(handler) do |server|
      sockets = server.sockets
      sockets.join(scoreboard, slot)
      sockets.limit = 1
      sockets.queue(10, 1)
      Array.new(3) { server.connect.ask }
      until_true { sockets.waiting == 2 }
      release << true
      until_true { sockets.busy + sockets.waiting == 0 }

      assert_equal 2, sockets.rejected_late
      assert_equal 0, scoreboard.read(slot)[:in_flight]
    ensure
      release.close
    end
  end

  def test_a_server_shows_what_it_does
    scoreboard = Scoreboard.new(1)
    slot = scoreboard.claim(1, 0)
    handler = lambda do |exchange|
      reply(exchange, scoreboard.read(slot).values_at(:in_flight, :connections, :accepted).inspect)
    end
    serve(handler) do |server|
      server.sockets.join(scoreboard, slot)

      assert_equal [Process.pid, true], scoreboard.read(slot).values_at(:pid, :accepting)
      client = server.connect

      assert_equal "[1, 1, 1]", client.ask.answer
      assert_kind_of Float, scoreboard.read(slot)[:busy_for]
      until_true { scoreboard.read(slot)[:in_flight] == 0 }

      assert_equal [1, 1], scoreboard.read(slot).values_at(:connections, :requests)
      client.close
      until_true { scoreboard.read(slot)[:connections] == 0 }

      assert_raises(ArgumentError) { server.sockets.join(scoreboard, slot) }
      server.sockets.stop_listening

      refute scoreboard.read(slot)[:accepting]
    end
    assert_nil scoreboard.read(slot)[:busy_for]
  end

  # The number decides when the worker is replaced.
  def test_callbacks_of_a_web_socket_are_not_counted_as_requests
    scoreboard = Scoreboard.new(1)
    slot = scoreboard.claim(1, 0)
    echoing = Class.new { def on_message(client, message) = client.write(message) }.new
    call = ->(handler, callback, client, message) { handler.public_send(callback, client, message) }
    handler = lambda do |exchange|
      exchange.response.start(101, {}, protocol: "websocket")
      exchange.response.flush
      exchange.open_websocket(echoing, call, false, nil, :plain)
    end
    serve(handler) do |server|
      server.sockets.join(scoreboard, slot)
      client = WebSocketClient.new(server.connect)
      3.times do
        client.text("hello")

        assert_equal "hello", client.message
      end
      until_true { server.sockets.busy == 0 }

      assert_equal 1, scoreboard.read(slot)[:requests]
    ensure
      client&.io&.close
    end
  end

  # Two servers on the same socket, in one loop: whoever is asked first leaves a connection to the other one.
  def test_connections_go_to_the_one_that_has_least
    scoreboard = Scoreboard.new(2)
    listener = TCPServer.new("127.0.0.1", 0)
    serve(echo, listener:) do |first|
      second = sockets_with(first.scheduler, echo)
      second.listen(listener)
      both = [first.sockets, second].each { |sockets| sockets.join(scoreboard, scoreboard.claim(1, 0)) }
      clients = Array.new(40) { first.connect }
      until_true { both.sum(&:connections) == 40 }

      assert_in_delta 20, second.connections, 4
      clients.each(&:ask)

      assert_equal ["x"] * 40, clients.map(&:answer)
    ensure
      second&.close
    end
  end

  def test_no_connection_is_left_for_a_worker_that_does_not_accept
    scoreboard = Scoreboard.new(2)
    listener = TCPServer.new("127.0.0.1", 0)
    serve(echo, listener:) do |first|
      first.sockets.join(scoreboard, scoreboard.claim(1, 0))
      scoreboard.claim(1, 1) # of somebody who has not begun
      clients = Array.new(10) { first.connect }
      until_true { first.sockets.connections == 10 }

      assert_equal 10, clients.size
    end
  end
end
