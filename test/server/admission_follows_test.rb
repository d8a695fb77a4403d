# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# Without max_requests the limit adapts to the worker's load, and status and metrics show it.
class AdmissionFollowsTest < Minitest::Test
  include ServerHelpers

  FLOOR = Heddle::Server::AdmissionPolicy::POOL_FLOOR

  # Requests that run until the block is over.
  def running(count, app, **options, &)
    serving(app, access_log: false, queue_timeout: 600, **options) { await_requests(count, &) }
  end

  def await_requests(count)
    sockets = Array.new(count) { connect }
    sockets.each { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    yield
    @release.close
    sockets.each { |socket| assert_match(/ 200 /, read_answer(socket)) }
  ensure
    @release.close
    sockets&.each(&:close)
  end

  def held
    @release = Thread::Queue.new
    lambda do |_env|
      yield
      [200, {}, ["x"]]
    end
  end

  def test_while_all_is_well_there_is_no_limit
    running(50, held { @release.pop }) do
      found = until_statistics { |statistics| statistics[:running] == 50 }

      assert_equal [nil, nil, 0, 0], found.values_at(:limit, :limited_by, :waiting, :pool_waiting)
      assert_operator found[:lag], :<, 30
    end
  end

  def test_tasks_that_wait_for_a_pool
    pool = Heddle::Pool.new(max: 2) { Object.new }
    app = held { pool.with { @release.pop } }
    running(50, app) do
      found = until_statistics { |statistics| statistics[:limit] }

      assert_equal [FLOOR, :pool], found.values_at(:limit, :limited_by)
      # On a busy machine the limit is there before all have come.
      assert_includes FLOOR..48, found[:pool_waiting]
    end
  end

  def test_memory
    used = 0
    Heddle::Server::Memory.stub(:compared, ->(_limit) { used }) do
      running(50, held { @release.pop }, memory_limit: 1, max_connections: 100) do
        until_statistics { |statistics| statistics[:running] == 50 }
        used = 2_000_000
        found = until_statistics { |statistics| statistics[:limit] }

        # Four fifths of what runs.
        assert_equal [40, :memory, 2_000_000], found.values_at(:limit, :limited_by, :memory)
      end
    end
  end

  def test_a_limit_is_logged
    pool = Heddle::Pool.new(max: 2) { Object.new }
    app = held { pool.with { @release.pop } }
    running(50, app) do
      until_statistics { |statistics| statistics[:limit] }
      more = Array.new(5) { connect.tap { |socket| socket.write("GET / HTTP/1.0\r\n\r\n") } }
      until_statistics { |statistics| statistics[:waiting] == 5 }
      sleep 0.001 until output.string.include?("busy")

      assert_match(/busy: 5 requests wait, because at most \d+ requests run at once \(most requests wait for a pool\)/,
                   output.string)
      @release.close
      more.each { |socket| assert_match(/ 200 /, read_all(socket)) }
    end
  end
end
