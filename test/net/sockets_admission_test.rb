# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# How many calls of the block run at once, which connections wait, and that none is forgotten.
module SocketsAdmissionTests
  # What waits until the test lets it continue.
  class Gate
    attr_reader :inside, :order

    def initialize(scheduler)
      @scheduler = scheduler
      @inside = []
      @order = []
    end

    # @return [Boolean] whether the client is to get a response
    def call(exchange)
      @order << exchange.target.delete_prefix("/")
      @inside << Fiber.current
      @scheduler.park while @inside.include?(Fiber.current)
      !exchange.closed?
    end

    def open(count = @inside.size) = @inside.shift(count).each { |fiber| @scheduler.unpark(fiber) }
  end

  def gated(**options)
    gate = nil
    handler = lambda do |exchange|
      error_of(Heddle::ClientGoneError) { reply(exchange, "x") } if gate.call(exchange)
    end
    serve(handler, **options) do |server|
      gate = Gate.new(server.scheduler)
      yield server, gate, server.sockets
    ensure
      server.sockets.limit = nil unless server.sockets.closed?
      gate.open
    end
  end

  # Clients that have asked, in this order.
  def ask(server, *texts)
    known = heard(server)
    texts.each_with_index.map do |text, index|
      client = server.connect.ask(text)
      until_true { heard(server) == known + index + 1 }
      client
    end
  end

  def rejected?(client) = client.answer && client.status == 503

  def heard(server) = server.sockets.busy + server.sockets.waiting + server.sockets.rejected_full

  def test_without_a_limit_all_are_served
    gated do |server, gate, sockets|
      clients = ask(server, *"a".."j")
      until_true { gate.inside.size == 10 }

      assert_nil sockets.limit
      assert_equal [10, 0, 10], [sockets.busy, sockets.waiting, gate.inside.size]
      gate.open
      clients.each { |client| assert_equal "x", client.answer }
    end
  end

  def test_an_address_has_three_quarters_of_a_raised_limit_and_all_without_one
    gated(max_connections: 100) do |server, gate, sockets|
      sockets.limit = 2
      ask(server, *"a".."h")

      assert_equal [%w[a], 7], [gate.order, sockets.waiting]
      sockets.limit = 4
      until_true { gate.inside.size == 3 }
      server.scheduler.yield

      assert_equal [3, 5], [sockets.busy, sockets.waiting]
      sockets.limit = nil
      until_true { gate.inside.size == 8 }

      assert_equal [*"a".."h"], gate.order
    end
  end

  def test_what_an_address_has_begun_beyond_its_share_of_a_lowered_limit_leaves_others_a_quarter
    gated(max_connections: 100) do |server, gate, sockets|
      ask(server, *"a".."h")
      until_true { sockets.busy == 8 }
      sockets.limit = 4
      others = Array.new(2) { TCPSocket.new("127.0.0.1", server.port, "127.0.0.66") }
      others.each { |socket| socket.write(Heddle::TestHelpers::HTTPClient.request("i")) }
      until_true { [sockets.busy, sockets.waiting] == [9, 1] }

      assert_equal [*"a".."i"], gate.order
      gate.open(8)
      until_true { gate.order.size == 10 }

      assert_equal [2, 0], [sockets.busy, sockets.waiting]
    ensure
      others&.each(&:close)
    end
  end

  def test_a_raised_limit_admits_waiting_requests_and_a_lowered_one_interrupts_none
    gated do |server, gate, sockets|
      sockets.limit = 1
      ask(server, *"a".."h")

      assert_equal [1, 7], [sockets.busy, sockets.waiting]
      sockets.limit = 4
      until_true { gate.inside.size == 4 }

      assert_equal %w[a b c d], gate.order
      sockets.limit = 2
      gate.open(2)
      until_true { sockets.busy == 2 }
      5.times { server.scheduler.yield }

      assert_equal [2, 4], [sockets.busy, sockets.waiting]
      gate.open(1)
      until_true { gate.order.size == 5 }
      sockets.limit = nil
      until_true { gate.order.size == 8 }

      assert_equal [*"a".."h"], gate.order
      assert_equal 0, sockets.waiting
    end
  end

  def test_a_full_queue_rejects_requests
    gated do |server, gate, sockets|
      sockets.limit = 1
      sockets.queue(2, nil)
      clients = Array.new(4) { server.connect }
      until_true { sockets.connections == 4 }
      clients.each_with_index do |client, index|
        client.ask
        until_true { heard(server) == index + 1 }
      end

      assert rejected?(clients.last)
      assert_equal [1, 2, 1], [sockets.busy, sockets.waiting, sockets.rejected_full]
      gate.open until clients.first(3).all? { |client| client.wait_readable(0) || server.scheduler.yield }
    end
  end

  # In the kernel's queue a client would wait without an answer, and so would a health check.
  def test_accepting_continues_while_the_queue_is_full
    gated do |server, gate, sockets|
      sockets.limit = 1
      sockets.queue(2, nil)
      ask(server, *"a".."c")

      assert_equal [1, 2, true], [sockets.busy, sockets.waiting, sockets.accepting?]
      assert rejected?(ask(server, "d").last)
      gate.open until sockets.waiting == 0 || server.scheduler.yield
    end
  end

  def test_end_queue_rejects_all_waiting_requests
    gated do |server, _, sockets|
      sockets.limit = 1
      clients = ask(server, *"a".."d")
      sockets.end_queue

      assert_equal [true, true, true], clients.drop(1).map { |client| rejected?(client) }
      assert_equal [1, 0], [sockets.busy, sockets.waiting]
    end
  end

  def test_a_waiting_connection_that_is_closed_leaves_the_queue
    gated do |server, gate, sockets|
      sockets.limit = 1
      clients = ask(server, *"a".."c")
      reset(clients[1])
      gate.open
      until_true { gate.order.size >= 2 }
      gate.open
      until_true { gate.order.size == 3 || sockets.waiting == 0 }

      assert_equal "c", gate.order.last
    end
  end

  # Lost wake-ups show where everything happens in every order. A limit that stays wakes nobody by being set.
  [1, 2, 5, nil].each do |limit|
    define_method(:"test_nobody_is_forgotten_while_the_limit_#{limit ? "is_#{limit}" : "moves"}") do
      random = Random.new(Minitest.seed)
      serve(moody(random)) do |server|
        server.scheduler.define_singleton_method(:report_failure) { |*| nil } # they are meant
        server.sockets.limit = limit
        done = 0
        12.times { Fiber.schedule { ask_often(server, random) && done += 1 } }
        until_true do
          server.sockets.limit = [1, 1, 2, 5, nil].sample(random:) unless limit
          sleep(0.002)
          done == 12
        end
        until_true { server.sockets.busy == 0 && server.sockets.waiting == 0 }
      end
    end
  end

  # What serves, and ends in any way that there is.
  def moody(random)
    fates = [->(_) { raise "no" }, ->(_) { raise NotImplementedError }, :close.to_proc,
             ->(exchange) { exchange.detach.close }]
    lambda do |exchange|
      sleep(0.001 * random.rand(3)) if random.rand(2) == 0
      next exchange.close if random.rand(10) == 0

      fate = fates[random.rand(20)] and next fate.call(exchange)
      reply(exchange, "x")
      sleep(0.001) if random.rand(20) == 0
    end
  end

  def ask_often(server, random)
    client = nil
    40.times do
      client ||= server.connect
      answer = nil
      error_of(SystemCallError) { answer = client.ask("y").answer }
      client = client.close if !answer || random.rand(5) == 0
    end
    client&.close
    true
  end

  def test_wrong_limits
    serve(echo) do |server|
      assert_raises(ArgumentError) { server.sockets.limit = 0 }
      assert_raises(ArgumentError) { server.sockets.queue(0, 1) }
      assert_raises(ArgumentError) { server.sockets.queue(1, -1) }
      server.sockets.close

      assert_raises(IOError) { server.sockets.limit = 1 }
    end
  end
end

Heddle::TestHelpers.with_each_event_set(SocketsAdmissionTests)
