# frozen_string_literal: true

require "test_helper"
require "heddle"
require "minitest/mock"
require "monitor"

# What Heddle adds to Active Record's adapters, with a stub of one.
class ActiveRecordTest < Minitest::Test
  class Adapter
    attr_reader :raw_connection, :disconnected

    prepend Heddle::Databases::ActiveRecord::MysqlAdapter

    def initialize = @raw_connection = Object.new

    def disconnect! = @disconnected = true
  end

  # In a killed fiber the driver's abandon does not return.
  def test_an_adapter_for_mysql_has_parted_from_its_connection_before_the_driver_ends_it
    adapter = Adapter.new
    raw = adapter.raw_connection
    driver = Object.new
    driver.define_singleton_method(:abandon) { |connection| throw :killed, connection }
    Heddle::Databases.stub(:driver, driver) do
      assert_same(raw, catch(:killed) { adapter.heddle_abandon })
    end

    assert adapter.disconnected
    assert_nil adapter.raw_connection
  end

  class Pool
    include MonitorMixin
    prepend Heddle::Databases::ActiveRecord::ConnectionPool
  end

  # Its connection would not come back, or its place for a connection.
  def test_task_that_is_cancelled_at_the_pools_lock_continues_until_its_next_wait
    require "heddle/concurrency/shield" # as `install` does
    pool = Pool.new
    locked, release = Array.new(2) { Thread::Queue.new }
    Thread.new { pool.synchronize { locked.push(true) && release.pop } }
    locked.pop
    inside = false
    Heddle.run do
      task = Heddle.async do
        Heddle.async { task.cancel && release.push(true) }
        pool.synchronize { inside = true }
        sleep
      end
    end

    assert inside
  end
end
