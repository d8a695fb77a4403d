# frozen_string_literal: true

require_relative "cluster_case"

# `max_total` of a pool: all workers together have no more connections, and none has them all while another needs one.
class ClusterPoolLimitTest < Minitest::Test
  include ClusterCase

  # Seconds for which a worker keeps the only connection while another has none.
  ROTATION = 0.1

  # A database: it answers "x" at once, and "h" when it is told to; "q" ends the connection.
  class Database
    attr_reader :most

    def initialize
      @server = TCPServer.new("127.0.0.1", 0)
      @lock = Mutex.new
      @changed = ConditionVariable.new
      @open = @most = @held = @answers = 0
      @threads = [Thread.new { loop { accept(@server.accept) } }]
    end

    def port = @server.addr[1]
    def held = @lock.synchronize { @held }

    def answer(count)
      @lock.synchronize do
        @answers += count
        @changed.broadcast
      end
    end

    def close
      @threads.each { |thread| thread.kill.join }
      @server.close
    end

    private

    def accept(socket)
      count(1)
      @threads << Thread.new { serve(socket) }
    end

    def serve(socket)
      while (query = socket.read(1)) && query != "q"
        hold if query == "h"
        socket.write(query)
      end
    rescue SystemCallError
      nil
    ensure
      count(-1)
      socket.close
    end

    def hold
      @lock.synchronize do
        @held += 1
        @changed.wait(@lock) until @answers.positive?
        @answers -= 1
        @held -= 1
      end
    end

    def count(number)
      @lock.synchronize do
        @open += number
        @most = [@most, @open].max
      end
    end
  end

  APP = <<~RUBY
    require "socket"
    # The database has counted it out before the worker does.
    ending = ->(connection) { connection.write("q") && connection.read && connection.close }
    POOL = Heddle::Pool.new(name: "database", max_total: %<limit>d, timeout: 60, close: ending) do
      TCPSocket.new("127.0.0.1", %<port>d)
    end
    run do |env|
      query = env["PATH_INFO"].delete_prefix("/")
      unless query.empty?
        POOL.with do |connection|
          connection.write(query)
          connection.readpartial(1)
        end
      end
      [200, { "x-worker" => $$.to_s }, [query]]
    end
  RUBY

  def setup
    super
    @database = Database.new
    @sockets = []
  end

  def teardown
    @sockets.each(&:close)
    super
    @database.close
  end

  def test_all_workers_together_have_no_more_connections_than_the_limit
    serve_with_limit(3)
    held = Array.new(12) { query(connect, "h") }
    wait_until { @database.held == 3 && pool_metric("pool_tasks_waiting").sum == 9 }

    assert_equal [3, 3], pool_metric("pool_shared_limit")
    assert_equal [3, 3], pool_metric("pool_shared_resources")
    @database.answer(12)

    assert_equal ["h"] * 12, held.map { |socket| answer_of(socket) }
    assert_equal 3, @database.most
  end

  def test_a_connection_that_is_idle_goes_to_a_worker_that_needs_one
    serve_with_limit(1)
    first, second = workers_connections

    3.times do
      assert_equal "x", answer_of(query(first, "x"))
      assert_equal "x", answer_of(query(second, "x"))
    end
    assert_equal 1, @database.most
  end

  # A worker that reports too late that it waits, on a busy machine, is passed over; so there are many turns.
  def test_a_busy_worker_lets_another_one_in
    serve_with_limit(1)
    first, second, busy = workers_connections
    held = [first, *Array.new(29) { connect_to(busy) }].map { |socket| query(socket, "h") }
    wait_until { @database.held == 1 }
    query(second, "x")
    wait_until { pool_metric("pool_tasks_waiting").sum == 30 }
    answered = answer_held_until_ready(second, held)

    assert_operator answered, :<, 30
    assert_equal "x", answer_of(second)
    @database.answer(30 - answered)

    assert_equal ["h"] * 30, held.map { |socket| answer_of(socket) }
    assert_equal 1, @database.most
  end

  def test_the_connections_of_a_worker_that_was_killed_come_back
    serve_with_limit(1)
    first, second, pid = workers_connections
    query(first, "h")
    wait_until { @database.held == 1 }
    waiting = query(second, "x")
    wait_until { pool_metric("pool_tasks_waiting").sum == 1 }
    signal("KILL", pid)

    assert_equal "x", answer_of(waiting)
  end

  def test_a_reload_under_load_loses_no_request_and_keeps_the_limit
    serve_with_limit(2)
    load = load(path: "/x")
    load.wait_for(20)
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")
    load.wait_for(20)

    assert_empty load.stop.failures, served.output
    assert_equal 2, @database.most
  end

  private

  def serve_with_limit(limit)
    write("config.ru", format(APP, limit:, port: @database.port))
    serve("--control", "unix:control.sock")
  end

  def connect = TCPSocket.new("127.0.0.1", served.uri.port).tap { |socket| @sockets << socket }

  # => [a connection, one to another worker, the first one's process]
  def workers_connections
    first, second, pid = connections_of_two_workers
    @sockets.push(first, second)
    [first, second, pid]
  end

  def query(socket, query)
    socket.write(format(GET, "/#{query}"))
    socket
  end

  def answer_of(socket)
    socket.timeout = PATIENCE
    head = socket.gets("\r\n\r\n")
    socket.read(Integer(head[/content-length: (\d+)/i, 1]))
  end

  def connect_to(pid)
    wait_until do
      socket = connect
      socket.write(format(GET, "/"))
      return socket if socket.readpartial(10_000)[/x-worker: (\d+)/, 1] == pid.to_s
    end
  end

  # The database answers the held queries one after the other, each after two rotations, until the socket has an answer.
  # => how many it has answered
  def answer_held_until_ready(socket, held)
    answered = 0
    until ready?(socket) || answered == held.size
      began = now
      wait_until { now - began > 2 * ROTATION }
      @database.answer(1)
      answered += 1
      wait_until { ready?(socket) || (held.count { |one| ready?(one) } == answered && @database.held == 1) }
    end
    answered
  end

  def ready?(socket) = !socket.wait_readable(0).nil?

  # Of both workers.
  def pool_metric(name) = (metrics["heddle_#{name}"] || {}).values
end
