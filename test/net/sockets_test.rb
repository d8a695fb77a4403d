# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# A connection costs a fiber only while it is served.
module SocketsTests
  def test_a_connection_is_served_again_and_again
    seen = []
    handler = lambda do |connection|
      seen << connection
      echo.call(connection)
    end
    serve(handler) do |server|
      client = server.connect
      3.times do |i|
        client.write("request #{i}")

        assert_equal "request #{i}", client.readpartial(100)
      end

      assert_equal [1, 1, 0], [server.sockets.connections, server.sockets.idle, server.sockets.running]
      assert_equal 1, server.sockets.accepted
    end
    assert_equal 3, seen.uniq.size, "each call has a connection object of its own"
  end

  def test_an_idle_connection_has_no_fiber
    serve(echo) do |server|
      clients = Array.new(50) { server.connect }
      until_true { server.sockets.connections == 50 }

      assert_equal 1, server.scheduler.fiber_count, "only the test's"
      clients.each { |client| client.write("x") }

      assert_equal ["x"] * 50, clients.map { |client| client.readpartial(10) }
      assert_operator server.scheduler.fiber_count, :<=, 10
      assert_equal 50, server.sockets.idle
    end
  end

  def test_a_connection_that_the_block_leaves_as_it_is_gets_closed
    serve(->(connection) { connection.readpartial(10) }) do |server|
      client = server.connect
      client.write("x")

      assert_nil client.read(1)
      assert_equal 0, server.sockets.connections
    end
  end

  def test_a_released_connection_object_raises
    errors = []
    handler = lambda do |connection|
      connection.readpartial(10)
      connection.idle!
      errors << connection.closed?
      %i[idle! detach remote_address].each do |name|
        errors << error_of(IOError) do
          connection.send(name)
        end
      end
      errors << error_of(IOError) { connection.write("x") } << error_of(IOError) { connection.readpartial(1) }
      connection.close
    end
    serve(handler) do |server|
      server.connect.write("x")
      until_true { errors.size == 6 }

      assert_equal 1, server.sockets.idle, "close is nobody's business any more"
    end
    assert errors.shift
    errors.each { |error| assert_match(/closed, or was released/, error.message) }
  end

  def test_pushed_back_input_is_served_at_once
    served = []
    handler = lambda do |connection|
      input = connection.readpartial(100)
      served << input[0]
      connection.unread(input[1..])
      connection.idle!
    end
    serve(handler) do |server|
      server.connect.write("abcdef")
      until_true { served.size == 6 }

      assert_equal 1, server.sockets.idle
    end
    assert_equal %w[a b c d e f], served
  end

  def test_pipelined_requests_take_turns_with_those_of_others
    order = []
    handler = lambda do |connection|
      input = connection.readpartial(100)
      order << input[0]
      connection.unread(input[1..])
      connection.idle!
    end
    serve(handler) do |server|
      greedy = server.connect
      other = server.connect
      until_true { server.sockets.connections == 2 }
      greedy.write("a" * 50)
      other.write("b")
      until_true { order.size == 51 }
    end
    assert_operator order.index("b"), :<=, 3
  end

  def test_pipelined_requests_take_turns_with_other_fibers
    served = 0
    handler = lambda do |connection|
      served += 1
      connection.unread(connection.readpartial(100)[1..])
      connection.idle!
    end
    serve(handler) do |server|
      server.connect.write("a" * 50)
      until_true { served > 0 }
      turns = 0
      while served < 50
        turns += 1
        sleep 0
      end

      assert_operator turns, :>=, 40
    end
  end

  def test_a_peer_that_goes_while_idle_costs_no_call
    calls = 0
    handler = lambda do |connection|
      calls += 1
      echo.call(connection)
    end
    serve(handler) do |server|
      silent = server.connect
      served = server.connect
      served.write("x")
      served.readpartial(1)
      silent.close
      served.close
      until_true { server.sockets.connections == 0 && server.sockets.accepted == 2 }
      impolite = server.connect
      until_true { server.sockets.connections == 1 }
      reset(impolite)
      until_true { server.sockets.connections == 0 }
    end
    assert_equal 1, calls
  end

  def test_bytes_sent_before_a_close_are_read
    heard = []
    handler = lambda do |connection|
      heard << connection.readpartial(100) << connection.readpartial(100)
    end
    serve(handler) do |server|
      client = server.connect
      until_true { server.sockets.connections == 1 }
      client.write("bye")
      client.close
      until_true { heard.size == 2 }
    end
    assert_equal ["bye", nil], heard
  end

  def test_an_error_of_the_block_ends_its_connection_and_no_other
    handler = lambda do |connection|
      raise "broken block" if connection.readpartial(10) == "raise"

      connection.write("fine")
      connection.idle!
    end
    _out, err = capture_io do
      serve(handler) do |server|
        bad = server.connect
        good = server.connect
        bad.write("raise")

        assert_nil bad.read(1)
        good.write("x")

        assert_equal "fine", good.readpartial(10)
        assert_equal 1, server.sockets.connections
      end
    end
    assert_match(/broken block/, err)
  end

  def test_a_waiting_block_does_not_delay_other_connections
    gates = Hash.new { |hash, key| hash[key] = Thread::Queue.new }
    handler = lambda do |connection|
      input = connection.readpartial(10)
      gates["slow"].pop if input == "slow"
      connection.write("#{input} done")
      connection.idle!
    end
    serve(handler) do |server|
      slow = Array.new(20) { server.connect }
      quick = server.connect
      until_true { server.sockets.connections == 21 }
      slow.each { |client| client.write("slow") } # all are ready in the same turn
      quick.write("quick")

      assert_equal "quick done", quick.readpartial(100)
      until_true { server.sockets.running == 20 }
      20.times { gates["slow"] << true }

      assert_equal ["slow done"] * 20, slow.map { |client| client.readpartial(100) }
    end
  end

  def test_only_its_own_thread_may_use_it
    errors = []
    handler = lambda do |connection|
      calls = [[:readpartial, 1], [:write, "x"], [:idle!], [:detach], [:close], [:remote_address]]
      errors.concat(Thread.new { calls.map { |call| error_of(ThreadError) { connection.send(*call) } } }.value)
      connection.write(connection.readpartial(1))
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")

      assert_equal "x", client.read
      errors << Thread.new { error_of(ThreadError) { server.sockets.close } }.value
    end
    assert_equal 7, errors.compact.size
    errors.each { |error| assert_match(/another thread/, error.message) }
  end

  def test_wrong_arguments_raise
    scheduled do |scheduler|
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler) }
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler, max_connections: 0) { nil } }
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler, set: :carrier_pigeon) { nil } }
      sockets = Heddle::Net::Sockets.new(scheduler, set:) { nil }
      one, other = UNIXSocket.pair

      assert_match(/not a listening socket/, assert_raises(ArgumentError) { sockets.listen(one) }.message)
      assert_raises(TypeError) { sockets.listen(1) }
      sockets.close
      one.close
      other.close
    end
  end
end
Heddle::TestHelpers.with_each_event_set(SocketsTests)
