# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# How many requests may run at once, by what the worker bears.
class AdmissionPolicyTest < Minitest::Test
  FLOOR = Heddle::Server::AdmissionPolicy::FLOOR
  MEBIBYTE = 1_048_576

  def policy = @policy ||= Heddle::Server::AdmissionPolicy.new(lag_target: 0.25, memory_limit: 1_000 * MEBIBYTE)

  # The limit after so many seconds in which every sample is like this.
  # @param working [Integer, nil] how many of those that run don't wait for a pool; nil: none waits
  def after(seconds, lag: 0.0, busy: 100, waiting: 0, working: nil, memory: nil)
    left = seconds
    while left > 0
      elapsed = 0.1 + lag
      running = [busy, policy.limit].compact.min
      pool_waiting = working ? running - working : 0
      limit = policy.look(Heddle::Server::AdmissionPolicy::Sample.new(elapsed:, lag:, memory:, pool_waiting:,
                                                                      busy: running, waiting:))
      left -= elapsed
    end
    limit
  end

  def test_while_all_is_well_there_is_no_limit
    assert_nil after(60, busy: 10_000, waiting: 500, lag: 0.1)
    assert_nil policy.reason
    assert_in_delta 0.1, policy.lag, 0.001
  end

  def test_a_late_loop_brings_the_limit_down_to_a_share_of_what_runs_and_again
    assert_equal 80, after(0.7, lag: 0.5)
    assert_equal :lag, policy.reason
    assert_equal 64, after(0.6, lag: 0.5)
    assert_equal FLOOR, after(60, lag: 0.5)
  end

  def test_a_limit_is_never_below_the_floor_and_few_requests_get_none
    assert_nil after(60, lag: 2, busy: FLOOR)
    assert_nil policy.reason
    assert_equal FLOOR, after(60, lag: 2, busy: FLOOR + 1)
  end

  def test_a_long_tick_lowers_the_limit_by_one_step_at_most
    limit = after(0.1, lag: 3, busy: 1_000)

    assert_equal 800, limit
    assert_operator after(5, busy: 1_000), :>=, 800
  end

  def test_the_limit_grows_while_lag_is_low_and_requests_wait
    least = after(20, lag: 0.5, busy: 1_000)
    grown = after(6, busy: 1_000, waiting: 100)

    assert_equal FLOOR, least
    assert_operator grown, :>, 4 * least
    assert_equal :lag, policy.reason
  end

  def test_the_limit_does_not_grow_without_waiters_and_is_lifted_after_a_while
    least = after(10, lag: 0.5)

    assert_equal least, after(8, busy: 3)
    assert_nil after(6, busy: 3)
    assert_nil policy.reason
  end

  def test_between_well_and_late_it_stays
    limit = after(2, lag: 0.5)

    assert_equal limit, after(60, lag: 0.22, waiting: 10)
  end

  def test_memory_above_its_limit_brings_it_down_as_long_as_it_grows
    assert_nil after(5, memory: 999 * MEBIBYTE)
    assert_equal 80, after(0.2, memory: 1_001 * MEBIBYTE)
    assert_equal :memory, policy.reason
    assert_equal 80, after(60, memory: 1_001 * MEBIBYTE, waiting: 10), "what a process has it mostly keeps"
    assert_equal 64, after(0.2, memory: 1_010 * MEBIBYTE, waiting: 10)
    assert_operator after(2, memory: 500 * MEBIBYTE, waiting: 10), :>, 64
  end

  def test_memory_without_a_limit_is_nothing_to_go_by
    @policy = Heddle::Server::AdmissionPolicy.new(lag_target: 0.25)

    assert_nil after(60, memory: 1_000_000 * MEBIBYTE)
  end

  def test_where_most_wait_for_a_pool_the_limit_is_twice_what_does_not
    assert_equal 40, after(5, busy: 500, working: 20)
    assert_equal :pool, policy.reason
    assert_in_delta 40, after(30, busy: 500, working: 20, waiting: 400), 5
    assert_equal FLOOR, after(10, busy: 500, working: -300), "many tasks of few requests"
  end

  def test_a_crowd_at_a_pool_brings_the_limit_down_at_once
    assert_nil policy.crowd(FLOOR, FLOOR - 1)
    assert_nil policy.crowd(40, 20)
    assert_equal 38, policy.crowd(40, 21)
    assert_equal :pool, policy.reason
    assert_equal FLOOR, policy.crowd(40, 39)
    assert_equal FLOOR, policy.crowd(100, 60), "it only comes down"
  end

  def test_a_few_that_wait_for_a_pool_are_fine
    assert_nil after(60, busy: 500, working: 300)
  end

  # A loop that gets later with each request that runs: the limit settles where it is in time.
  def test_the_limit_settles
    limits = Array.new(600) do
      busy = [500, policy.limit].compact.min
      after(0.01, busy:, lag: busy * 0.002, waiting: 500 - busy)
      policy.limit
    end
    settled = limits.last(300).compact

    assert_operator settled.min, :>=, 80
    assert_operator settled.max, :<=, 160
  end
end
