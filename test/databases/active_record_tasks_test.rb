# frozen_string_literal: true

require_relative "support/database_programs"

# Active Record in tasks of one loop: asynchronous queries, and tasks within transactions.
class ActiveRecordTasksTest < Minitest::Test
  include DatabasePrograms

  class << self
    attr_accessor :seen
  end

  # All tests look at one run.
  def seen
    env = { "HEDDLE_RECORD_OPTIONS" => "&checkout_timeout=60" }
    self.class.seen ||= database_program("active_record_tasks_program", "active_record", "pg", limit: 3, env:)
  end

  def test_asynchronous_queries_run_at_the_same_time_without_configuration
    assert_equal 3, seen["at_once"]
    assert_equal [[1]] * 3, seen["async"]
    assert_equal 1, seen["counted"]
  end

  def test_a_query_cancelled_with_its_scope_runs_when_its_result_is_read
    assert_equal [1], seen["unfinished"]
  end

  def test_a_query_ended_by_a_time_limit_runs_again
    assert_equal ["too late", 1], seen["limited"]
  end

  def test_outside_a_request_they_run_in_place
    assert_equal 1, seen["without_session"]
  end

  def test_a_child_task_does_not_share_the_transaction_of_its_parent
    assert_equal [1, 2], seen.values_at("child_sees", "parent_sees")
  end

  def test_in_development_a_warning_says_that_a_task_takes_a_connection_beside_the_transaction
    assert_match(/a task uses a database connection of its own at \S+_program\.rb:\d+, while its parent/,
                 seen["warned"])
  end

  def test_a_child_that_can_never_have_a_connection_gets_an_error_at_once_with_both_places
    assert_match(/all 3 connections of the pool primary .+ at \S+_program\.rb:\d+, .+ waits at \S+_program\.rb:\d+\./,
                 seen["nested"])
    assert seen["nested_is_heddles"]
    assert_operator seen["nested_took"], :<, 30, "the time limit for a check-out is 60 s"
  end

  def test_one_task_gets_an_error_when_all_holders_wait_for_their_children
    assert_includes seen["nested_later"], "error"
    assert_includes seen["nested_later"], 1
    assert_operator seen["nested_later_took"], :<, 30, "the time limit for a check-out is 60 s"
  end

  def test_a_task_that_waits_looks_at_no_connection_where_none_is_held_around_it
    times, connections = seen["looks"]

    assert_operator times, :>, 0
    assert_equal 0, connections
  end

  def test_a_fiber_that_is_not_a_task_and_has_them_all_gets_an_error_at_once
    assert_match(/all 3 connections of the pool primary .+ at \S+_program\.rb:\d+, .+ waits at \S+_program\.rb:\d+\./,
                 seen["plain"])
    assert_includes seen["plain"], ". Return the connection to the pool before such a wait, or make the pool larger"
    assert_operator seen["plain_took"], :<, 30, "the time limit for a check-out is 60 s"
  end

  def test_an_application_that_chose_threads_keeps_them
    assert_equal [[1], 1], seen.values_at("in_threads", "threads_tasks")
  end

  def test_the_pool_is_listed_among_the_pools
    pool, = seen["pools"]

    assert_equal ["primary writing", "active_record", 3, 3], pool.values_at("pool", "library", "limit", "size")
    assert_operator pool["waits"], :>=, 1
  end
end
