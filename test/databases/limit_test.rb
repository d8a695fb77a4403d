# frozen_string_literal: true

require_relative "support/database_programs"

# `max_total` of Active Record's pools: all workers together have no more connections.
class LimitTest < Minitest::Test
  include DatabasePrograms

  # After each step as many shares are taken as the database counts connections.
  SHARES = { "open" => 3, "removed" => 2, "broken" => 1, "flushed" => 0, "disconnected" => 0,
             "disconnected_while_leased" => 0, "reaped" => 3, "reconnected" => 3, "all_in_use" => 3, "one_yielded" => 2,
             "idle" => 2, "idle_given" => 1, "after_wait" => 1, "second_pool" => 3, "pool_removed" => 0,
             "after_fork" => 3 }.freeze

  DatabasePrograms::DRIVERS.each do |driver|
    define_method(:"test_each_connection_of_#{driver}_has_a_share_until_it_is_closed") do
      results = database_program("limit_program", "active_record", driver, limit: 4)

      assert_equal SHARES.transform_values { |count| [count, count] }, results.slice(*SHARES.keys)
      check(results)
    end
  end

  private

  def check(results)
    assert_match(/within 0\.100 seconds .*; max_total of the database \w+ allows 3 connections in all workers\b/,
                 results["refusal"])
    assert_equal [nil, true, true], results.values_at("kept", "taken", "taken_again")
    assert_equal [0.1, 7, 7], results.values_at("waits", "served", "second_pool_served")
    assert_equal ["nil", 0], results.values_at("in_a_fork", "discarded")
  end
end
