# frozen_string_literal: true

require "concurrency/support/loop_helpers"

# `max: :auto`: the pool finds its own limit.
class PoolLimitTest < Minitest::Test
  include Heddle::LoopHelpers

  def setup
    @limit = Heddle::Pool::AdaptiveLimit.new(40)
    @time = 0.0
  end

  # So many come back, each used for the given time, and tasks wait.
  def step(held, count = 20)
    count.times { @limit.returned(held) }
    @limit.check(@time += 0.1)
  end

  def test_grows_to_the_most_while_the_resource_answers_as_before
    40.times { step(0.02) }

    assert_equal 40, @limit.value
  end

  def test_grows_when_nothing_comes_back_at_all
    40.times { step(0, 0) }

    assert_equal 40, @limit.value
  end

  def test_a_resource_that_serves_two_at_once_keeps_it_small
    # Whoever waits inside the resource makes it slower.
    values = Array.new(100) do
      step([0.02, 0.02 * @limit.value / 2].max)
      @limit.value
    end

    assert_operator values.last(50).max, :<=, [((Etc.nprocessors * 2) + 1) * 2, 39].min
    assert_operator values.last(50).min, :>=, 2, "both are used"
  end

  def test_follows_work_that_has_changed
    20.times { step(0.001) }
    200.times { step(0.05) }

    assert_equal 40, @limit.value
  end

  def test_falls_to_the_existing_number_when_a_connection_is_refused
    40.times { step(0.02) }
    @limit.refused(7)

    assert_equal 7, @limit.value
  end

  def test_a_pool_without_waiters_records_no_times
    in_loop do
      pool = Heddle::Pool.new { Object.new }
      20.times { pool.with {} }
      assert_empty pool.instance_variable_get(:@limit).instance_variable_get(:@times)
    end
  end

  def test_a_pool_grows_while_tasks_wait_and_never_more_than_the_most
    in_loop do
      pool = Heddle::Pool.new(max_auto: 12, timeout: 30) { Object.new }
      barrier = Heddle::Barrier.new(12)
      Heddle.map(1..12) { pool.with { barrier.wait } }
      assert_equal [12, 12], [pool.size, pool.limit]
    end
  end
end
