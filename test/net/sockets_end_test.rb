# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# Idle times, stopping, closing: each end happens in order.
module SocketsEndTests
  def test_idle_connections_are_closed_in_time
    serve(echo, service: engine(idle_timeout: 0.1, head_timeout: 0.1)) do |server|
      started = now
      client = server.connect

      assert_nil client.read(1)
      assert_operator now - started, :>=, 0.09
      assert_equal 0, server.sockets.connections
    end
  end

  def test_a_connection_in_use_is_not_idle
    gate = Thread::Queue.new
    handler = lambda do |exchange|
      gate.pop if said(exchange) == "long"
      echo.call(exchange)
    end
    serve(handler, service: engine(idle_timeout: 1.5)) do |server|
      busy = server.connect
      long = server.connect.ask("long")
      started = now
      while now - started < 2
        busy.ask.answer
        sleep 0.02
      end
      gate << true

      assert_equal "long", long.answer
      assert_equal 2, server.sockets.connections
      assert_nil long.read(1)
      assert_nil busy.read(1)
    end
  end

  def test_a_graceful_stop
    gate = Thread::Queue.new
    serve(answering_once_open(gate)) do |server|
      idle = server.connect
      busy = server.connect.ask("slow")
      until_true { server.sockets.connections == 2 && server.sockets.running == 1 }
      server.sockets.stop_listening
      server.sockets.shutdown_idle

      assert_nil idle.read(1)
      assert_equal [1, 1], [server.sockets.connections, server.sockets.running]
      gate << true

      assert_equal "slow", busy.answer
      assert_nil busy.read(1), "who becomes idle now is closed"
    end
  end

  def test_after_a_stop_it_may_listen_again
    serve(echo) do |server|
      server.sockets.stop_listening
      server.sockets.shutdown_idle
      late = server.connect # in the kernel's queue
      late.ask

      assert_nil late.wait_readable(0.05)
      server.sockets.listen(server.listener)

      assert_equal "x", late.answer
      until_true { server.sockets.running == 0 }

      assert_equal 1, server.sockets.idle
    end
  end

  def test_shutting_down_idle_ones_lets_the_others_be
    serve(echo) do |server|
      client = server.connect
      until_true { server.sockets.connections == 1 }
      server.sockets.shutdown_idle

      assert_nil client.read(1)
      other = server.connect

      assert_equal "x", other.ask.answer
      assert_equal 1, server.sockets.connections
    end
  end

  def test_close_ends_connections_in_every_state
    errors = []
    told = []
    serve(waiting_as_told(told, errors)) do |server|
      clients = %w[read wait idle write].map { |word| server.connect.ask(word) }
      clients << server.connect # silent
      until_true { server.sockets.connections == 5 && told.size == 4 }
      2.times { server.sockets.close }

      assert_predicate server.sockets, :closed?
      assert_equal [0, 0], [server.sockets.connections, server.sockets.running]
      until_true { errors.size == 3 }
      clients.delete_at(3) # it has a lot to read first
      clients.delete_at(2).answer

      assert_equal([nil] * 3, clients.map { |client| client.read(1) })
    end
    assert_equal 2, errors.compact.size
    errors.compact.each { |error| assert_match(/was closed/, error.message) }
  end

  def test_closed_sockets_say_so
    serve(echo) do |server|
      server.sockets.close
      error = assert_raises(IOError) { server.sockets.listen(server.listener) }

      assert_match(/are closed/, error.message)
      server.sockets.stop_listening
      server.sockets.shutdown_idle
    end
  end

  def test_exit_in_the_block_ends_the_loop
    serving = nil
    assert_raises(SystemExit) do
      serve(->(_exchange) { exit 3 }) do |server|
        serving = server.sockets
        server.connect.ask
        until_true { false }
      rescue Heddle::Cancelled
        nil
      end
    end
    assert_predicate serving, :closed?
  end

  def test_the_loop_ends_while_runners_are_idle
    in_thread do
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      listener = TCPServer.new("127.0.0.1", 0)
      sockets = sockets_with(scheduler, echo)
      sockets.listen(listener)
      answers = []
      2.times do
        Fiber.schedule do
          TCPSocket.open("127.0.0.1", listener.local_address.ip_port) do |client|
            answers << client.extend(Heddle::TestHelpers::HTTPClient).ask.answer
          end
        end
        scheduler.run # returns, though a runner rests
      end

      assert_equal %w[x x], answers
      Fiber.set_scheduler(nil)

      assert_predicate sockets, :closed?, "the end of the loop is the end of its sockets"
      listener.close
    end
  end

  private

  def answering_once_open(gate)
    lambda do |exchange|
      gate.pop if said(exchange) == "slow"
      echo.call(exchange)
    end
  end

  def waiting_as_told(told, errors)
    large = "x" * 50_000_000 # making it takes longer than a slice
    lambda do |exchange|
      case told.push(said(exchange)).last
      when "read" then errors << error_of(IOError) { exchange.readpartial(1) }
      when "write" then errors << error_of(IOError) { exchange.write(large) }
      when "wait" then errors << error_of(IOError) { sleep 0.01 until exchange.closed? }
      when "idle" then reply(exchange, "")
      end
    end
  end
end
Heddle::TestHelpers.with_each_event_set(SocketsEndTests)
