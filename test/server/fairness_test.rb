# frozen_string_literal: true

# test: each selector

require "test_helper"
require "rbconfig"
require_relative "server_helpers"

# Every connection gets its turn, and so does everything else in the loop.
class FairnessTest < Minitest::Test
  include ServerHelpers

  # Keeps each of its connections busy until so many answers are there, and tells how many each of them had.
  CLIENT = <<~'RUBY'
    require "socket"
    port, connections, total = ARGV.map(&:to_i)
    sockets = Array.new(connections) { TCPSocket.new("127.0.0.1", port) }
    counts = Hash.new(0)
    sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    while counts.values.sum < total
      readable, = IO.select(sockets)
      readable.each do |socket|
        head = socket.gets("\r\n\r\n")
        socket.read(head[/content-length: (\d+)/, 1].to_i)
        counts[socket] += 1
        socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      end
    end
    puts counts.values.join(" ")
  RUBY

  def compute(seconds)
    till = now + seconds
    nil while now < till
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # The paths in the order in which a loop answers them that was held up while the block sent all of them; with a tick
  # wherever a timer has had its turn.
  def order_of(milliseconds: 5, ticking: false, **options)
    order = []
    go = over = false
    held = Thread::Queue.new
    app = lambda do |env|
      if env["PATH_INFO"] == "/hold"
        Fiber.schedule { sleep(0.001) && order << "tick" until over } if ticking
        held << true
        Thread.pass until go
      else
        compute(milliseconds / 1_000.0)
        order << env["PATH_INFO"]
      end
      [200, {}, ["x"]]
    end
    serving(app, lint: false, access_log: false, **options) do
      holder = connect
      holder.write(request("/hold"))
      held.pop(timeout: PATIENCE)
      sockets = yield
      go = true
      sockets.each { |socket, count| count.times { read_answer(socket) } }
      over = true
    end
    order
  end

  def request(path) = "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"

  def test_busy_connections_are_served_equally_often
    serving(->(_env) { compute(0.003) || [200, {}, ["x"]] }, lint: false, access_log: false) do
      output = IO.popen([RbConfig.ruby, "--disable-gems", "-e", CLIENT, port.to_s, "8", "480"], &:read)
      counts = output.split.map(&:to_i)

      assert_equal 8, counts.size
      assert_operator counts.max.fdiv(counts.min), :<=, 1.05, counts.inspect
    end
  end

  [{}, { max_requests: 1 }, { max_requests: 3 }].each do |options|
    define_method(:"test_one_that_pipelines_does_not_starve_others_#{options.values.first || "without_limit"}") do
      order = order_of(**options) do
        many = connect
        many.write(request("/many") * 60)
        others = Array.new(20) { connect }
        others.each { |socket| socket.write(request("/other")) }
        [[many, 60], *others.map { |socket| [socket, 1] }]
      end

      assert_equal [60, 20], order.tally.values_at("/many", "/other")
      assert_operator order[0..order.rindex("/other")].count("/many"), :<=, 3
    end
  end

  def test_requests_that_compute_leave_the_loop_its_turns
    order = order_of(milliseconds: 10, ticking: true) do
      sockets = Array.new(30) { connect }
      sockets.each { |socket| socket.write(request("/compute")) }
      sockets.map { |socket| [socket, 1] }
    end
    runs = order.chunk_while { |one, other| one == other }.select { |run| run.first == "/compute" }

    assert_equal 30, order.count("/compute")
    assert_operator runs.map(&:size).max, :<=, 4, "requests in a row, of 10 ms each"
  end
end
