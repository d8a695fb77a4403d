# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# The fibers that serve connections: they are pooled, but no use of one sees anything of an earlier one.
class RunnerTest < Minitest::Test
  include Heddle::TestHelpers::SocketsCase

  def test_a_fiber_serves_many_connections
    fibers = serve_many(10) { Fiber.current }

    assert_equal 1, fibers.uniq.size
  end

  def test_a_pooled_fiber_keeps_no_state_of_its_last_use
    seen = serve_many(5) do |i|
      fiber = Fiber.current
      before = [Fiber[:user], fiber.storage, Thread.current[:user], Thread.current.keys,
                fiber.instance_variables, fiber.instance_variable_get(:@user), $!] # rubocop:disable Style/SpecialGlobalVars
      Fiber[:user] = i
      Fiber[:other] = i
      Thread.current[:user] = i
      fiber.instance_variable_set(:@user, i)
      fiber.instance_variable_set(:@other, i)
      before
    end

    assert_equal 1, seen.map { |values|
      values.map { |value|
        value.respond_to?(:empty?) && value.empty? ? nil : value
      }
    }
                        .uniq.size, seen.inspect
    assert_equal [nil, [], []], seen.last.values_at(0, 3, 4)
    assert_nil seen.last[5]
  end

  def test_fiber_storage_of_the_creator_is_not_inherited
    seen = nil
    scheduled do |scheduler|
      Fiber[:secret] = "of the server"
      listener = TCPServer.new("127.0.0.1", 0)
      sockets = sockets_with(scheduler, seeing { seen = [Fiber[:secret], Fiber.current.storage] })
      sockets.listen(listener)
      Server.new(sockets, listener).connect.ask
      until_true { seen }
      sockets.close
      listener.close
    end
    assert_nil seen[0]
    assert_empty seen[1].to_h
  end

  def test_a_storage_handed_on_survives_the_wipe
    gate = Thread::Queue.new
    seen = []
    handler = lambda do |exchange|
      Fiber[:user] = said(exchange)
      Fiber.schedule { gate.pop; seen << Fiber[:user] }
      echo.call(exchange)
    end
    serve(handler) do |server|
      client = server.connect
      %w[a b].each { |word| client.ask(word).answer }
      2.times { gate << true }
      until_true { seen.size == 2 }
    end
    assert_equal %w[a b], seen.sort
  end

  def test_an_interrupt_that_came_too_late_does_not_hit_the_next_use
    seen = []
    fibers = []
    handler = lambda do |exchange|
      fibers << Fiber.current
      seen << said(exchange)
      seen << error_of(StandardError) { sleep 0.01 } if seen.size > 1
      echo.call(exchange)
      Fiber.scheduler.interrupt(Fiber.current, RuntimeError.new("too late")) if seen.size == 1
    end
    serve(handler) do |server|
      client = server.connect.ask("a")
      until_true { server.sockets.idle == 1 && seen.size == 1 }
      client.ask("b")
      until_true { seen.size == 3 }
    end
    assert_equal ["a", "b", nil], seen
    assert_same(*fibers)
  end

  # An Enumerator that is never resumed stays in its block.
  def test_a_time_limit_of_a_fiber_that_was_left_is_not_raised_in_its_next_use
    seen = serve_many(3) do |i|
      next Enumerator.new { |out| Timeout.timeout(0.001) { out << :left } }.next if i.zero?

      Enumerator.new { |out| out << (error_of(Exception) { sleep 0.01 } || :slept) }.next
    end

    assert_equal %i[left slept slept], seen
  end

  def test_a_mask_of_a_fiber_that_was_left_delays_no_time_limit_of_the_next_use
    late = Class.new(StandardError)
    seen = serve_many(2) do |i|
      next Enumerator.new { |out| Thread.handle_interrupt(late => :never) { out << :left } }.next if i.zero?

      Enumerator.new { |out| out << error_of(late) { Timeout.timeout(0.001, late) { sleep 5 } }.class }.next
    end

    assert_equal [:left, late], seen
  end

  def test_a_fiber_is_retired_after_a_thousand_uses
    fibers = serve_many(1001) { Fiber.current }

    assert_equal [1000, 1], fibers.chunk_while { |one, other| one.equal?(other) }.map(&:size)
    refute_predicate fibers.first, :alive?
  end

  def test_a_fiber_is_retired_after_an_exception_that_is_not_a_standard_error
    fibers = []
    handler = lambda do |exchange|
      fibers << Fiber.current
      raise [nil, RuntimeError, NotImplementedError][fibers.size] || RuntimeError, "on purpose" if fibers.size < 3

      reply(exchange, "fine")
    end
    _out, err = capture_io do
      serve(handler) do |server|
        3.times { error_of(Errno::ECONNRESET) { server.connect.ask.answer } }
      end
    end
    assert_equal 2, err.scan("on purpose").size
    assert_same fibers[0], fibers[1]
    refute_same fibers[1], fibers[2]
  end

  def test_many_waiting_handlers_have_a_fiber_each_and_few_fibers_are_kept
    gate = Thread::Queue.new
    handler = lambda do |exchange|
      gate.pop
      echo.call(exchange)
    end
    serve(handler) do |server|
      clients = Array.new(100) { server.connect.ask }
      until_true { server.sockets.running == 100 }

      assert_operator server.scheduler.fiber_count, :>, 100
      100.times { gate << true }
      clients.each(&:answer)
      started = now
      sleep 0.05 until server.scheduler.fiber_count <= 10 || now - started > LIMIT

      assert_operator server.scheduler.fiber_count, :<=, 10
      assert_equal 100, server.sockets.idle
    end
  end

  def test_connections_ready_in_the_same_tick_are_served_by_one_fiber
    fibers = []
    serve(seeing { fibers << Fiber.current }) do |server|
      clients = Array.new(30) { server.connect }
      until_true { server.sockets.connections == 30 }
      clients.each(&:ask)
      answers = clients.map(&:answer)

      assert_equal clients.size, answers.size
    end
    assert_operator fibers.uniq.size, :<=, 2
  end

  def test_a_connection_whose_block_waits_delays_the_next_one_by_a_tick
    gate = Thread::Queue.new
    turns = 0
    began = []
    handler = lambda do |exchange|
      began << turns
      gate.pop
      echo.call(exchange)
    end
    serve(handler) do |server|
      clients = Array.new(60) { server.connect }
      until_true { server.sockets.connections == 60 }
      2.times do
        began.clear
        clients.each(&:ask)
        until began.size == 60
          turns += 1
          sleep 0
        end
        60.times { gate << true }
        clients.each(&:answer)
      end
    end
    assert_operator began.last - began.first, :<=, 60
  end

  def test_other_fibers_get_their_turn_beside_a_flood
    turns = 0
    served = 0
    serve(seeing { served += 1 }) do |server|
      clients = Array.new(20) { server.connect }
      flood = clients.map { |client| Fiber.schedule { 100.times { client.ask.answer } } }
      while flood.any?(&:alive?)
        turns += 1
        sleep 0
      end
    end
    assert_equal 2000, served
    assert_operator turns, :>, 100
  end

  def test_the_job_of_a_runner_says_what_it_is
    job = nil
    serve(seeing { job = Fiber.scheduler.current }) do |server|
      server.connect.ask
      until_true { job }
    end
    assert_equal "Heddle::Net::Runner", job.class.name
  end

  private

  def seeing
    lambda do |exchange|
      yield
      echo.call(exchange)
    end
  end

  # What the block returned in each of so many uses, one after the other.
  def serve_many(count)
    results = []
    handler = lambda do |exchange|
      results << yield(results.size)
      echo.call(exchange)
    end
    serve(handler) do |server|
      client = server.connect
      count.times { client.ask.answer }
    end
    results
  end
end
