# frozen_string_literal: true

require "concurrency/support/loop_helpers"

# What a pool does periodically: it closes idle and old resources, and keeps its minimum.
class PoolUpkeepTest < Minitest::Test
  include Heddle::LoopHelpers

  # A pool whose time the test moves on.
  class StillPool < Heddle::Pool
    attr_writer :time

    def now = @time ||= 0.0
  end

  def setup
    @closed = 0
  end

  def still(**options) = StillPool.new(max: 10, close: ->(_) { @closed += 1 }, **options) { Object.new }

  # Has as many in use at the same time.
  def fill(pool, count)
    barrier = Heddle::Barrier.new(count)
    Heddle.map(1..count) { pool.with { barrier.wait } }
  end

  def test_an_idle_pool_closes_all_without_being_used
    in_loop do
      pool = Heddle::Pool.new(idle_timeout: 0.01, close: ->(_) { @closed += 1 }) { Object.new }
      pool.with {}
      sleep 0.005 until pool.idle.zero?
      assert_equal [1, 1], [@closed, pool.statistics[:closed][:idle]]
    end
  end

  def test_keeps_the_minimum
    in_loop do
      pool = still(min: 2, idle_timeout: 10)
      fill(pool, 5)
      pool.time = 11
      pool.send(:tend)
      assert_equal [2, 3], [pool.size, @closed]
    end
  end

  def test_creates_missing_resources_up_to_the_minimum
    in_loop do
      pool = still(min: 3)
      pool.with {}
      pool.send(:tend)
      assert_equal [3, 3], [pool.size, pool.idle]
    end
  end

  def test_replaces_old_resources_at_jittered_times
    in_loop do
      pool = still(max_age: 100, idle_timeout: nil)
      fill(pool, 10)
      pool.time = 89.9
      pool.send(:tend)
      assert_equal 10, pool.size
      sizes = (900..1000).map do |tenth|
        pool.time = tenth / 10.0
        pool.send(:tend)
        pool.size
      end
      assert_equal 0, sizes.last
      assert_operator sizes.each_cons(2).map { |one, other| one - other }.max, :<=, 2, "not all at once"
      assert_equal 10, pool.statistics[:closed][:age]
    end
  end

  def test_a_resource_that_expires_in_use_is_closed_on_release
    in_loop do
      pool = still(max_age: 100)
      pool.with { pool.time = 101 }
      assert_equal [0, 1], [pool.size, pool.statistics[:closed][:age]]
    end
  end

  def test_a_resource_that_expires_while_idle_is_not_acquired
    in_loop do
      pool = still(max_age: 100, idle_timeout: nil)
      first = pool.with(&:itself)
      pool.time = 101
      refute_same first, pool.with(&:itself)
    end
  end

  def test_closes_the_other_old_resources_after_one_was_interrupted
    %i[shrink close].each do |method|
      closed = []
      in_loop do
        pool = StillPool.new(max_age: 100, idle_timeout: nil, close: lambda { |one|
          closed << one
          forever if closed.one?
        }) { Object.new }
        fill(pool, 3)
        pool.time = 101
        closing = Heddle.async { pool.send(method) }
        turns
        closing.cancel
        closing.wait
        pool.send(method)
      end

      assert_equal 3, closed.size, method
    end
  end

  def test_serves_waiters_if_closing_an_old_resource_is_interrupted
    in_loop do
      closing = nil
      pool = Heddle::Pool.new(max: 1, max_age: 0, timeout: 2, close: ->(_) { forever if closing }) { Object.new }
      last = Heddle.async { pool.with { turns } }
      turns(1)
      waiting = Heddle.async { pool.with { :served } }
      closing = true
      turns(10)
      closing = false
      last.cancel
      assert_equal :served, waiting.value
    end
  end

  def test_tries_again_for_a_waiter_when_retry_after_has_passed
    in_loop do
      made = 0
      pool = Heddle::Pool.new(max: 2, retry_after: 0.01, timeout: 2) do
        (made += 1) == 2 ? raise(IOError, "too many connections") : Object.new
      end
      pool.with { pool.with { assert_equal [2, 3], [pool.size, made] } }
    end
  end

  def test_the_upkeep_does_not_keep_the_loop_running
    took = seconds { in_loop { Heddle::Pool.new(idle_timeout: 60) { Object.new }.with {} } }

    assert_operator took, :<, 20
  end

  def test_a_pool_continues_in_the_next_loop
    pool = Heddle::Pool.new(idle_timeout: 0.01) { Object.new }
    in_loop { pool.with {} }
    in_loop do
      pool.with {}
      sleep 0.005 until pool.idle.zero?
    end
    assert_equal 0, pool.size
  end

  def test_acquire_waits_for_five_seconds_by_default
    in_loop do
      pool = StillPool.new(max: 1) { Object.new }
      seconds = nil
      waiting = TracePoint.new(:call) do |point|
        seconds = point.binding.local_variable_get(:timeout) if point.self.is_a?(Heddle::Pool::Waiter) &&
                                                                point.method_id == :wait
      end
      pool.with do
        task = waiting.enable { Heddle.async { pool.with { flunk } }.tap { turns } }
        task.cancel
        task.wait
      end

      assert_equal 5, seconds
    end
  end

  def test_resets_what_comes_back_and_closes_it_where_that_fails
    in_loop do
      reset = 0
      pool = still(reset: ->(_) { (reset += 1) < 2 })
      pool.with {}
      assert_equal 1, pool.size
      pool.with {}
      assert_equal [0, 1], [pool.size, pool.statistics[:closed][:broken]]
    end
  end

  def test_statistics
    in_loop do
      pool = still(name: "things")
      pool.with { pool.time = 2 }
      statistics = pool.statistics

      assert_equal ["things", 10, 1, 0, 1, 0, 1, 2.0],
                   statistics.values_at(:name, :limit, :size, :busy, :idle, :waiting, :created, :held_seconds)
      assert_includes Heddle::Pool.all, pool
      pool.close
      refute_includes Heddle::Pool.all, pool
    end
  end
end
