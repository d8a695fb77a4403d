# frozen_string_literal: true

require "concurrency/support/loop_helpers"

# Connections that are held while their fibers wait for something else.
class PoolHeldTest < Minitest::Test
  include Heddle::LoopHelpers

  # Stands for a driver that knows whether a query is under way.
  Driver = Struct.new(:quiet) do
    def quiet?(_connection) = quiet
    def clean(_connection) = true
    def recover(_connection) = false
    def open?(_connection) = true
    def alive?(_connection) = true
  end

  # A pool whose time the test moves on.
  class StillPool < Heddle::Pool
    attr_writer :time, :driver

    def now = @time ||= 0.0
  end

  def held(quiet)
    in_loop do
      pool = StillPool.new(max: 2, name: "things") { Object.new }
      pool.with {}
      pool.driver = Driver.new(quiet)
      task = Heddle.async { pool.with { forever } }
      turns
      _, err = capture_io { [0.6, 1.2, 1.8].each { |time| (pool.time = time) && pool.send(:tend) } }
      task.cancel
      yield err, pool.statistics[:held_while_waiting]
    end
  end

  def test_held_connection_is_reported_once_with_check_out_and_wait_lines
    held(true) do |err, count|
      assert_match(/\Aheddle: things: a fiber has held a connection for 1\.2 s while it waits for something/, err)
      assert_match(/It checked the connection out at \S+held_test\.rb:\d+, and waits at \S+:\d+\. /, err)
      assert_equal [1, 1], [err.lines.size, count]
    end
  end

  def test_connection_whose_fiber_waits_in_a_query_is_not_reported
    held(false) { |err, count| assert_equal ["", 0], [err, count] }
  end
end
