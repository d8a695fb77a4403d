# frozen_string_literal: true

require "test_helper"
require_relative "../server_helpers"

# `--mode fiber --threads N`: a loop in each of several threads.
class LoopsTest < Minitest::Test
  include ServerHelpers

  LAST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

  # Requests that wait until all have come, and say which loop had them.
  def meeting(count)
    arrived = 0
    lock = Thread::Mutex.new
    all = Thread::Queue.new
    lambda do |_env|
      lock.synchronize { all.close if (arrived += 1) == count }
      all.pop
      [200, {}, [Fiber.scheduler.object_id.to_s]]
    end
  end

  def test_all_loops_accept_and_what_they_count_is_one
    serving(text, threads: 3) do
      assert_equal 3, server.engines.size
      until_shared = lambda do
        50.times { exchange(LAST) }
        server.engines.count { |engine| engine.requests > 0 }
      end
      limit = now + PATIENCE
      shared = until_shared.call
      shared = until_shared.call until shared > 1 || now > limit

      assert_operator shared, :>, 1, "one loop has served everything"
      found = server.statistics

      assert_equal server.engines.sum(&:requests), found[:accepted]
      assert_equal [true, nil], found.values_at(:accepting, :limit)
    end
  end

  def test_requests_of_all_loops_run_at_the_same_time
    serving(meeting(20), threads: 2) do
      schedulers = Array.new(20) { Thread.new { exchange(LAST)[/\d+\z/] } }.map(&:value)

      refute_includes schedulers, nil
    end
  end

  def test_limits_are_those_of_the_process
    serving(text, threads: 2, max_requests: 5, max_connections: 100) do
      assert_equal [6, :max_requests], server.statistics.values_at(:limit, :limited_by)
    end
  end

  def test_all_loops_end_in_order
    app, arrived, release = waiting_application("done")
    start(app, threads: 3)
    sockets = Array.new(9) { connect.tap { |socket| socket.write(LAST) } }
    9.times { arrived.pop(timeout: PATIENCE) }
    server.stop
    9.times { release << true }

    assert_equal ["done"] * 9, sockets.map { |socket| read_all(socket)[-4..] }
    assert wait_for_end, "every request was answered"
    assert_raises(Errno::ECONNREFUSED) { connect }
  end

  def test_stopping_at_once_ends_all_loops
    arrived = Thread::Queue.new
    app = lambda do |_env|
      arrived << true
      sleep
    end
    start(app, threads: 2)
    sockets = Array.new(8) { connect.tap { |socket| socket.write(LAST) } }
    8.times { arrived.pop(timeout: PATIENCE) }
    server.stop(now: true)

    refute wait_for_end
    sockets.each { |socket| assert_operator read_all(socket), :start_with?, "HTTP/1.1 503 " }
  end
end
