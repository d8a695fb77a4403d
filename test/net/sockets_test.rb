# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# A connection costs a fiber only while it is served.
module SocketsTests
  def test_a_connection_is_served_again_and_again
    seen = []
    handler = lambda do |exchange|
      seen << exchange
      echo.call(exchange)
    end
    serve(handler) do |server|
      client = server.connect
      3.times { |i| assert_equal "request-#{i}", client.ask("request-#{i}").answer }

      assert_equal [1, 1, 0], [server.sockets.connections, server.sockets.idle, server.sockets.running]
      assert_equal 1, server.sockets.accepted
    end
    assert_equal 3, seen.uniq.size, "each call has an exchange of its own"
  end

  def test_an_idle_connection_has_no_fiber
    serve(echo) do |server|
      clients = Array.new(50) { server.connect }
      until_true { server.sockets.connections == 50 }

      assert_equal 1, server.scheduler.fiber_count, "only the test's"
      clients.each(&:ask)

      assert_equal ["x"] * 50, clients.map(&:answer)
      assert_operator server.scheduler.fiber_count, :<=, 10
      assert_equal 50, server.sockets.idle
    end
  end

  def test_a_connection_that_the_block_leaves_as_it_is_gets_closed
    serve(:target.to_proc) do |server|
      assert_nil server.connect.ask.read(1)
      assert_equal 0, server.sockets.connections
    end
  end

  def test_pipelined_requests_take_turns_with_those_of_others
    order = []
    handler = lambda do |exchange|
      order << said(exchange)
      echo.call(exchange)
    end
    serve(handler) do |server|
      greedy = server.connect
      other = server.connect
      until_true { server.sockets.connections == 2 }
      greedy.write(Heddle::TestHelpers::HTTPClient.request("a") * 50)
      other.ask("b")
      until_true { order.size == 51 }
    end
    assert_operator order.index("b"), :<=, 17 # a turn has 16
  end

  def test_a_peer_that_goes_while_idle_costs_no_call
    calls = 0
    handler = lambda do |exchange|
      calls += 1
      echo.call(exchange)
    end
    serve(handler) do |server|
      silent = server.connect
      served = server.connect
      served.ask.answer
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

  def test_a_request_sent_before_a_close_is_served
    heard = []
    serve(->(exchange) { heard << said(exchange) }) do |server|
      client = server.connect
      until_true { server.sockets.connections == 1 }
      client.ask("bye").close
      until_true { heard.any? }
    end
    assert_equal ["bye"], heard
  end

  def test_an_error_of_the_block_ends_its_connection_and_no_other
    handler = lambda do |exchange|
      raise "broken block" if said(exchange) == "raise"

      reply(exchange, "fine")
    end
    _out, err = capture_io do
      serve(handler) do |server|
        bad = server.connect
        good = server.connect

        assert_nil bad.ask("raise").answer
        assert_equal "fine", good.ask.answer
        assert_equal 1, server.sockets.connections
      end
    end
    assert_match(/broken block/, err)
  end

  def test_a_waiting_block_does_not_delay_other_connections
    gates = Hash.new { |hash, key| hash[key] = Thread::Queue.new }
    handler = lambda do |exchange|
      gates["slow"].pop if said(exchange) == "slow"
      reply(exchange, "#{said(exchange)} done")
    end
    serve(handler) do |server|
      slow = Array.new(20) { server.connect }
      quick = server.connect
      until_true { server.sockets.connections == 21 }
      slow.each { |client| client.ask("slow") } # all are ready in the same turn

      assert_equal "quick done", quick.ask("quick").answer
      until_true { server.sockets.running == 20 }
      20.times { gates["slow"] << true }

      assert_equal ["slow done"] * 20, slow.map(&:answer)
    end
  end

  def test_only_its_own_thread_may_use_it
    serve(echo) do |server|
      error = Thread.new { error_of(ThreadError) { server.sockets.close } }.value

      assert_match(/another thread/, error.message)
    end
  end

  def test_wrong_arguments_raise
    scheduled do |scheduler|
      service = engine
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler, service:) }
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler) { nil } }
      assert_raises(TypeError) { Heddle::Net::Sockets.new(scheduler, service: "HTTP") { nil } }
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler, service:, max_connections: 0) { nil } }
      assert_raises(ArgumentError) { Heddle::Net::Sockets.new(scheduler, service:, set: :carrier_pigeon) { nil } }
      sockets = Heddle::Net::Sockets.new(scheduler, service:, set:) { nil }
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
