# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"

# The HTTP client's connections, which all clients of the process share.
class ClientPoolTest < ClientCase
  def echo = serve { |socket, request| socket.write(hello(request.body.empty? ? request.target : request.body)) }

  def test_connections_outlive_loops_threads_and_clients
    server = echo
    Client.new(server.url, proxy: nil).get("/")
    in_loop { Client.new(server.url, proxy: nil).get("/") }
    in_thread { in_loop { Client.new(server.url, proxy: nil).get("/") } }
    in_thread { Client.new(server.url, proxy: nil).get("/") }

    assert_equal 1, server.connections
  end

  def test_no_more_connections_than_the_limit
    server = echo
    client = Client.new(server.url, proxy: nil, max_connections: 3)
    in_loop { Heddle.map(1..50) { |n| assert_equal "/#{n}", client.get("/#{n}").body } }

    assert_operator server.connections, :<=, 3
  end

  def test_threads_and_loops_share_the_limit
    server = echo
    client = Client.new(server.url, proxy: nil, max_connections: 2)
    threads = Array.new(4) do |n|
      Thread.new do
        work = -> { Array.new(20) { |i| client.get("/#{n}-#{i}").body } }
        n.even? ? work.call : in_loop { work.call }
      end
    end

    assert_equal((0..3).map { |n| Array.new(20) { |i| "/#{n}-#{i}" } }, threads.map(&:value))
    assert_operator server.connections, :<=, 2
  end

  def test_connection_is_released_when_its_request_is_interrupted_at_the_lock
    server = echo
    interrupt_during_release(Client.new(server.url, proxy: nil), server)

    assert_equal [1, 1], Client.statistics.fetch(server.url).values_at(:open, :idle)
  end

  def test_exception_from_another_thread_interrupts_the_block_of_a_stream_while_it_computes
    server = echo
    thread = Thread.current
    deferred = false
    assert_raises(Interruption) do
      Client.new(server.url, proxy: nil).stream(:get, "/") do
        Thread.new { thread.raise(Interruption) }
        deferred = Thread.pending_interrupt? until deferred
      end
    end

    refute deferred
    assert_equal 0, Client.statistics.fetch(server.url)[:open]
  end

  def test_waiting_for_a_connection_has_a_time_limit
    server = serve { |socket, _| socket.read }
    client = Client.new(server.url, proxy: nil, max_connections: 1, timeout: { pool: 0.05 })
    in_loop do
      Heddle.scope do |scope|
        scope.async { client.get("/") }
        Heddle.async { assert_raises(Client::PoolTimeoutError) { client.get("/") } }.value
        scope.cancel
      end
    end

    assert_operator Client.statistics.fetch(server.url)[:wait_seconds], :>=, 0.05
  end

  def test_a_wait_for_a_connection_ends_with_the_total_limit
    server = serve { |socket, _| socket.read }
    client = Client.new(server.url, proxy: nil, max_connections: 1)
    in_loop do
      Heddle.scope do |scope|
        scope.async { client.get("/") }
        Heddle.async { assert_raises(Client::TotalTimeoutError) { client.get("/", timeout: 0.05) } }.value
        scope.cancel
      end
    end
  end

  # The first request reads its head, then the second one waits for the connection, then the server ends the first body.
  # @yield [socket] how the server ends the body
  # @return [Array<String>] both bodies
  def pass_on(&ending)
    gate = Thread::Queue.new
    done = Thread::Queue.new
    server = serve do |socket, request|
      next socket.write(hello("second")) unless request.target == "/first"

      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
      gate.pop
      ending.call(socket)
      done.push(true)
    end
    client = Client.new(server.url, proxy: nil, max_connections: 1)
    second = nil
    first = client.stream(:get, "/first") do |response|
      second = Thread.new { client.post("/second", body: "x").body }
      until_true { Client.statistics.fetch(server.url)[:waiting] == 1 }
      gate.push(true)
      done.pop
      response.body
    end
    [first, second.value]
  end

  def test_a_connection_that_was_closed_after_the_response_is_not_passed_on
    assert_equal %w[first second], pass_on { |socket| socket.write("first") && socket.close }
  end

  def test_an_unrequested_response_is_not_given_to_a_waiting_request
    assert_equal %w[first second], pass_on { |socket| socket.write("first#{hello("forged")}") }
  end

  # Whoever is cancelled while it waits, or with a connection, leaves room for the next one.
  def test_cancelled_requests_leave_no_connection_behind
    server = serve { |socket, request| request.target == "/slow" ? socket.read : socket.write(hello) }
    client = Client.new(server.url, proxy: nil, max_connections: 2)
    in_loop do
      Heddle.scope do |scope|
        6.times { scope.async { client.get("/slow") } }
        until_true { server.requests.size == 2 }
        scope.cancel
      end

      assert_equal "hello", client.get("/").body
    end
    figures = Client.statistics.fetch(server.url)

    assert_equal [1, 1, 0], figures.values_at(:open, :idle, :waiting)
  end

  def test_statistics_sum_up_clients_whose_settings_differ
    server = echo
    2.upto(4) { |limit| Client.new(server.url, proxy: nil, max_connections: limit).get("/") }

    figures = Client.statistics.fetch(server.url)

    assert_equal({ open: 3, idle: 3, waiting: 0, requests: 3, opened: 3, waits: 0, stale: 0 },
                 figures.reject { |name, _| name.end_with?("_seconds") })
    assert_equal 0, figures[:wait_seconds]
    assert_operator figures[:connect_seconds], :>, 0
    assert_operator figures[:answer_seconds], :>, 0
  end

  def test_statistics_of_a_child_process_have_nothing_of_its_parent
    Client.new(echo.url, proxy: nil).get("/")
    reader, writer = IO.pipe
    child = fork do
      writer.write(Client.statistics.inspect)
      writer.close
      exit!(0)
    end
    writer.close

    assert_equal "{}", reader.read
  ensure
    Process.wait(child) if child
  end

  def test_ten_thousand_gets_while_the_server_closes_idle_connections
    server = serve { |socket, request, _| socket.write(hello(request.target)) && rand(20).zero? && socket.close }
    client = Client.new(server.url, proxy: nil)
    in_loop { Heddle.map(1..20) { |n| 500.times { |i| raise unless client.get("/#{n}-#{i}").body == "/#{n}-#{i}" } } }

    assert_operator server.connections, :>, 20
  end

  def test_ten_thousand_posts_while_the_server_closes_idle_connections_are_never_doubled
    server = serve { |socket, request, _| socket.write(hello(request.body)) && rand(20).zero? && socket.close }
    client = Client.new(server.url, proxy: nil)
    unknown = 0
    in_loop do
      Heddle.map(1..20) do |n|
        500.times do |i|
          raise unless client.post("/", body: "#{n}-#{i}").body == "#{n}-#{i}"
        rescue Client::OutcomeUnknownError
          unknown += 1
        end
      end
    end
    bodies = server.received.map(&:body)

    assert_equal bodies.uniq.size, bodies.size
    assert_operator bodies.size, :>=, 10_000 - unknown
  end

  def test_idle_connections_close_when_their_time_is_over
    server = echo
    client = Client.new(server.url, proxy: nil, idle_timeout: 0.01)
    client.get("/")
    until_true { Client.statistics.fetch(server.url)[:idle].zero? }

    assert_equal "/", client.get("/").body
  end

  # A paused machine, whose periodic check has not run yet.
  def test_a_connection_whose_time_is_over_is_not_used_although_it_is_still_open
    server = echo
    client = Client.new(server.url, proxy: nil, idle_timeout: 60)
    client.get("/")
    origin = client.instance_variable_get(:@url_parser).find("/").first
    origin.instance_variable_get(:@idle).first.idle_since -= 60

    assert_equal "/", client.get("/").body
    assert_equal 2, server.connections
    assert_equal 1, Client.statistics.fetch(server.url)[:open]
  end

  def test_origins_without_connections_are_dropped_and_come_back
    server = echo
    used = Client.new(server.url, proxy: nil)
    gone = Client.new(server.url, proxy: nil, max_connections: 7)
    [used, gone].each { |client| client.get("/") }
    origin = gone.instance_variable_get(:@url_parser).find("/").first
    origin.close_idle(all: true)

    Client::OriginRegistry.drop_unused(0)

    refute_includes Client::OriginRegistry.origins, origin
    assert_equal 1, Client.statistics.fetch(server.url)[:open], "the other one has a connection, and stays"
    assert_equal "/again", gone.get("/again").body
    assert_equal 2, Client.statistics.fetch(server.url)[:open]
  end

  # A request has found its origin, which is dropped before it asks for a connection.
  def test_a_dropped_origin_that_is_used_is_known_again
    server = echo
    client = Client.new(server.url, proxy: nil)
    origin = client.instance_variable_get(:@url_parser).find("/").first
    Client::OriginRegistry.drop_unused(0)

    refute Client.statistics.key?(server.url)
    limits = client.instance_variable_get(:@limits)
    origin.release(origin.acquire(limits, nil))

    assert_equal 1, Client.statistics.fetch(server.url)[:open]
    refute_predicate origin, :retired?
  end

  def test_a_child_process_opens_connections_of_its_own
    server = echo
    client = Client.new(server.url, proxy: nil)
    client.get("/parent")
    from_child, to_parent = IO.pipe
    pid = fork do
      to_parent.write(client.get("/child").body)
      exit!(0)
    end
    Process.wait(pid)
    to_parent.close

    assert_equal "/child", from_child.read
    assert_equal "/again", client.get("/again").body
    assert_equal 2, server.connections
  end

  def test_client_works_under_another_fiber_scheduler
    server = echo
    client = Client.new(server.url, proxy: nil)

    assert_equal "/x", scheduled { client.get("/x").body }
  end
end
