# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# How many requests may run at once, depending on the worker's load.
class AdmissionPolicyTest < Minitest::Test
  FLOOR = Heddle::Server::AdmissionPolicy::POOL_FLOOR
  MEBIBYTE = 1_048_576

  def policy = @policy ||= Heddle::Server::AdmissionPolicy.new(memory_limit: 1_000 * MEBIBYTE)

  # The limit after so many seconds in which every sample is like this.
  # @param working [Integer, nil] how many of those that run don't wait for a pool; nil: none waits
  def after(seconds, busy: 100, waiting: 0, working: nil, memory: nil)
    left = seconds
    while left > 0
      running = [busy, policy.limit].compact.min
      pool_waiting = working ? running - working : 0
      limit = policy.update(Heddle::Server::AdmissionPolicy::Sample.new(elapsed: 0.1, memory:, pool_waiting:,
                                                                        busy: running, waiting:))
      left -= 0.1
    end
    limit
  end

  # The limit after memory has grown in so many steps, half a second apart.
  def after_growth(steps, busy: 100)
    @memory ||= 1_000
    steps.times { after(0.5, busy:, memory: (@memory += 10) * MEBIBYTE) }
    policy.limit
  end

  def test_while_all_is_well_there_is_no_limit
    assert_nil after(60, busy: 10_000, waiting: 500)
    assert_nil policy.reason
  end

  def test_memory_brings_the_limit_down_to_one_request_at_least
    assert_equal 80, after_growth(1)
    assert_equal 64, after_growth(1)
    assert_equal 1, after_growth(60)
  end

  def test_memory_lowers_the_limit_of_few_requests
    assert_equal 8, after_growth(1, busy: 10)
  end

  def test_the_limit_grows_while_requests_wait
    least = after_growth(60)
    grown = after(6, busy: 1_000, waiting: 100, memory: 500 * MEBIBYTE)

    assert_operator grown, :>, 40 * least
    assert_equal :memory, policy.reason
  end

  def test_the_limit_does_not_grow_without_waiters_and_is_lifted_after_a_while
    least = after_growth(5)
    after(0.1, busy: 3, memory: 500 * MEBIBYTE)

    assert_equal least, after(8, busy: 3)
    assert_nil after(6, busy: 3)
    assert_nil policy.reason
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
    @policy = Heddle::Server::AdmissionPolicy.new

    assert_nil after(60, memory: 1_000_000 * MEBIBYTE)
  end

  def test_where_most_wait_for_a_pool_the_limit_is_twice_what_does_not
    assert_equal 40, after(5, busy: 500, working: 20)
    assert_equal :pool, policy.reason
    assert_in_delta 40, after(30, busy: 500, working: 20, waiting: 400), 5
    assert_equal FLOOR, after(10, busy: 500, working: -300), "many tasks of few requests"
  end

  def test_a_crowd_at_a_pool_brings_the_limit_down_at_once
    assert_nil policy.limit_for_pools(FLOOR, FLOOR - 1)
    assert_nil policy.limit_for_pools(40, 20)
    assert_equal 38, policy.limit_for_pools(40, 21)
    assert_equal :pool, policy.reason
    assert_equal FLOOR, policy.limit_for_pools(40, 39)
    assert_equal FLOOR, policy.limit_for_pools(100, 60), "it only comes down"
  end

  def test_a_few_that_wait_for_a_pool_are_fine
    assert_nil after(60, busy: 500, working: 300)
  end
end
