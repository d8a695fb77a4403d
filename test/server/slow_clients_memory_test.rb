# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# A client that sends or reads slowly costs a record and no fiber.
class SlowClientsMemoryTest < Minitest::Test
  include ServerHelpers

  COUNT = 300
  # Fibers of a server at rest.
  FEW = 10
  # Larger than what the system takes of an answer before anybody has read it.
  LARGE = ("x" * 8_000_000).freeze

  def test_clients_that_trickle_their_heads_cost_no_fiber
    no_fibers(COUNT) do |sockets|
      "GET / HTTP/1.1\r\nHost".each_char { |byte| sockets.each { |socket| socket.write(byte) } }
    end
  end

  def test_clients_that_trickle_small_bodies_cost_no_fiber
    no_fibers(COUNT) do |sockets|
      sockets.each { |socket| socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc") }
    end
  end

  def test_clients_that_read_an_array_slowly_cost_no_fiber
    no_fibers(40) do |sockets|
      sockets.each do |socket|
        socket.write("GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        socket.wait_readable(PATIENCE)
        socket.readpartial(1)
      end
    end
  end

  def test_refused_clients_that_continue_sending_cost_no_fiber
    no_fibers(COUNT) do |sockets|
      sockets.each do |socket|
        socket.write("GET / HTTP/1.1\r\n\r\n")
        socket.wait_readable(PATIENCE)
        socket.write("x")
      end
    end
  end

  private

  def no_fibers(count)
    app = ->(env) { [200, {}, [env["PATH_INFO"] == "/large" ? LARGE : env["rack.input"].read.to_s]] }
    serving(app, access_log: false, head_timeout: 300, body_grace: 300, write_timeout: 300, linger_timeout: 60) do
      sockets = Array.new(count) { connect }
      yield sockets
      now = at_rest(count)

      assert_operator now[:connections], :>=, count
      assert_operator now[:fibers], :<=, FEW, now.inspect
      assert_equal "200", get("/").code, "somebody else is served"
    ensure
      sockets&.each(&:close)
    end
  end

  # The fibers that a burst has needed are let go soon after it.
  def at_rest(count)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    loop do
      now = server.statistics
      quiet = now[:connections] >= count && now[:fibers] <= FEW
      return now if quiet || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.001
    end
  end
end
