# frozen_string_literal: true

require "test_helper"
require "heddle/net"
require "concurrency/support/loop_helpers"

# `max_total`: each resource of a pool takes a share of a limit that all workers have in common. Here two workers are
# one process; test/server/cluster/pool_limit_test.rb has real ones.
class PoolSharingTest < Minitest::Test
  include Heddle::LoopHelpers

  class Failure < StandardError
  end

  def setup
    @scoreboard = Heddle::Net::Scoreboard.new(2)
    2.times { |index| @scoreboard.claim(1, index) }
  end

  def test_a_failed_creation_returns_its_share
    in_loop do
      pool = pool_of(0, 1) { raise Failure }
      2.times { assert_raises(Failure) { pool.with { flunk } } }

      assert_equal 0, pool.statistics[:size_total]
    end
  end

  def test_a_task_that_is_cancelled_while_it_makes_one_returns_its_share
    in_loop do
      pool = pool_of(0, 1) { Heddle::Promise.new.wait }
      task = Heddle.async { pool.with { flunk } }
      turns
      assert_equal 1, pool.statistics[:size_total]
      task.cancel
      turns(1) until task.ended?

      assert_equal 0, pool.statistics[:size_total]
    end
  end

  def test_a_task_that_is_cancelled_when_it_may_make_one_returns_its_share
    in_loop do
      pool = pool_of(0, 1)
      other = pool_of(1, 1)
      held = other.acquire
      task = Heddle.async { pool.with { flunk } }
      turns
      other.discard(held)
      task.cancel
      turns(1) until task.ended?

      assert_equal 0, pool.statistics[:size_total]
    end
  end

  def test_a_closed_resource_frees_its_share_for_another_worker
    in_loop do
      first, second = [0, 1].map { |slot| pool_of(slot, 2) }
      held = [first.acquire, first.acquire]
      assert_raises(Heddle::TimeoutError) { second.acquire(timeout: 0) }
      first.release(held.pop)
      first.close

      assert_kind_of Object, second.acquire(timeout: 0)
      assert_equal [2, 2], second.statistics.values_at(:size_total, :max_total)
    end
  end

  def test_the_limit_is_one_of_each_pool_as_well
    in_loop do
      assert_equal [3, 4], [pool_of(0, 10, max: 3).limit, pool_of(0, 4, max: 10).limit]
    end
  end

  def test_a_process_without_workers_has_the_whole_limit
    in_loop do
      pool = Heddle::Pool.new(name: "alone", max_total: 2, timeout: 0) { Object.new }
      2.times { pool.acquire }

      assert_raises(Heddle::Pool::NestedCheckoutError) { pool.acquire }
      assert_equal [2, 2], pool.statistics.values_at(:size_total, :max_total)
    end
  end

  def test_a_process_that_a_worker_has_forked_has_no_share_in_its_place
    place = Heddle::Net::PoolShares.new(@scoreboard, 0)
    _, status = Process.wait2(fork { exit!(place.open("pool", 1).nil?) })

    assert_predicate status, :success?
    refute_nil place.open("pool", 1)
  end

  def test_mistakes
    error = assert_raises(ArgumentError) { Heddle::Pool.new(max_total: 4) {} }
    assert_equal "`max_total` requires `name`, which identifies the pool in all workers", error.message
    error = assert_raises(ArgumentError) { Heddle::Pool.new(max_total: 0, name: "none") {} }
    assert_equal "max_total: is 0, but must be from 1 to 1024", error.message
    32.times { |number| pool_of(0, 1, name: number.to_s) }
    error = assert_raises(ArgumentError) { pool_of(0, 1, name: "one too many") }
    assert_match(/one too many: a server can have at most 32 pools/, error.message)
  end

  private

  # A pool of the worker with this slot.
  def pool_of(slot, max_total, name: "pool", **, &create)
    Heddle::Pool::Registry.sharing = Heddle::Net::PoolShares.new(@scoreboard, slot)
    Heddle::Pool.new(name:, max_total:, **, &create || -> { Object.new })
  ensure
    Heddle::Pool::Registry.sharing = nil
  end
end
