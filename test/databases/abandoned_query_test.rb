# frozen_string_literal: true

# test: long

require_relative "support/database_programs"

# A query that nobody waits for any more: its connection serves the next one at once, and the server stops computing.
class AbandonedQueryTest < Minitest::Test
  include DatabasePrograms

  # The promise is 0.1 s and 0.5 s; the abandoned query takes 30 s. Other tests run at the same time.
  SECONDS = 10
  ERRORS = { "timeout" => ["Heddle::TimeoutError"], "plain_timeout" => ["Timeout::Error"],
             "own_error" => ["KeyError", "ActiveRecord::StatementInvalid"], "failing_sibling" => ["KeyError"] }.freeze

  DatabasePrograms.each_access(self, "the_next_query_does_not_wait_and_the_server_stops") do |library, driver|
    seen = database_program("abandoned_program", library, driver, limit: 1)

    assert_equal %w[cancel failing_sibling own_error plain_timeout race scope timeout transaction], seen.keys.sort
    seen.each do |way, result|
      assert_includes ERRORS.fetch(way, [nil]), result["error"], way
      assert_equal 42, result["answer"], way
      assert_operator result["next"], :<, SECONDS, "#{way}: the next query"
      assert_operator result["gone"], :<, SECONDS, "#{way}: the abandoned one on the server"
    end
  end

  DatabasePrograms.each_access(self, "the_server_stops_what_a_killed_fiber_has_begun") do |library, driver|
    seen = database_program("killed_program", library, driver, limit: 1)

    assert_equal 0, seen["between"].delete("rows"), "a transaction that was killed commits nothing"
    assert_equal 42, seen["query"]["answer"]
    assert_equal 42, seen["transaction"]["answer"]
    seen.each do |place, result|
      assert_operator result["next"], :<, SECONDS, "#{place}: the next query"
      assert_operator result.fetch("gone", 0), :<, SECONDS, "#{place}: the abandoned one on the server"
    end
  end

  def test_a_transaction_that_was_interrupted_while_it_began_is_rolled_back
    seen = database_program("interrupted_begin_program", "active_record", "pg", limit: 1)
    idle = seen.delete("idle")

    assert_equal({ "cancelled" => idle, "killed" => idle, "kept" => idle }, seen)
  end

  def test_a_statement_of_sequel_that_was_interrupted_while_it_was_prepared_can_be_called_again
    seen = database_program("interrupted_prepare_program", "sequel", "pg", limit: 1)

    assert_equal({ "interrupted" => "Timeout::Error", "next" => [42] }, seen)
  end

  DatabasePrograms::LIBRARIES.each_key do |library|
    define_method("test_#{library}_repeats_a_cancel_that_came_before_the_query") do
      seen = database_program("lost_cancel_program", library, "pg", limit: 1)

      assert_equal({ "same" => true, "running" => 0 }, seen)
    end

    define_method("test_#{library}_hands_out_no_connection_in_pipeline_mode") do
      seen = database_program("pipeline_program", library, "pg", limit: 1)

      assert_equal({ "empty" => 42, "amid" => 42 }, seen)
    end

    define_method("test_#{library}_hands_out_no_connection_of_mysql2_amid_a_streamed_result") do
      seen = database_program("streamed_program", library, "mysql2", limit: 1)

      assert_equal [true, true], seen.delete("kept")
      assert_equal({ "block" => 42, "within" => 42, "around" => 42, "kill" => 42 }, seen)
    end

    define_method("test_#{library}_discards_a_connection_whose_cancel_is_not_confirmed") do
      seen = database_program("unconfirmed_program", library, "pg", limit: 1)

      assert seen["another"]
      assert_equal 42, seen["inside"]
      assert_equal 43, seen["last"]
      assert_operator seen["seconds"], :<, 10, "nobody waits for the query's end"
    end
  end
end
