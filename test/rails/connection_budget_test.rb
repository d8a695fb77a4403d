# frozen_string_literal: true

require "test_helper"
require "heddle"

# What the server says at boot about database connections.
class RailsConnectionBudgetTest < Minitest::Test
  # @return [String] the text of the event
  def event(name, **fields) = Heddle::Events::TABLE.fetch(name).text(fields)

  def text(name: nil, pool: 5, workers: 2, most: 100, **more)
    Heddle::Rails::ConnectionBudget.new(name:, pool:, workers:, most:, **more).report(self)
  end

  def test_the_notice_states_the_connections_used_at_most_and_the_databases_limit
    assert_equal "pool 5, workers 2 → at most 10 connections; each further machine opens as many. The database " \
                 "server's limit is 100",
                 text
  end

  def test_the_notice_states_the_connections_of_old_and_new_workers_during_a_reload
    assert_equal "pool 5, workers 2, reserves 1 → at most 15 connections, 30 during a reload; each further machine " \
                 "opens as many. The database server's limit is 100", text(reserves: 1, reloads: true)
  end

  def test_max_total_bounds_the_connections_now_and_during_a_reload
    assert_match(/\Apool 5, max_total 12, workers 2 → at most 10 connections, 12 during a reload;/,
                 text(max_total: 12, reloads: true))
    assert_match(/ → at most 12 connections, 12 during a reload;/, text(pool: 50, max_total: 12, reloads: true))
  end

  def test_the_notice_warns_above_four_fifths_of_the_databases_connections
    refute_match(/more than/, text(pool: 20, reloads: true))
    assert_equal "pool 21, workers 2 → at most 42 connections, 84 during a reload. This is more than " \
                 "80 % of the 100 connections that the database server allows, and each further machine opens as " \
                 "many. Make the pool smaller, or use PgBouncer (docs/databases.md)", text(pool: 21, reloads: true)
  end

  def test_a_database_that_could_not_be_asked_is_left_out
    assert_equal "pool 5, workers 2 → at most 10 connections", text(most: nil)
    assert_equal "pool 5, workers 2, reserves 1 → at most 15 connections", text(most: nil, reserves: 1)
  end

  def test_the_notice_names_each_of_several_databases
    assert_match(/\Aqueue: pool 5, workers 1 → at most 5 connections; each further machine opens as many\./,
                 text(name: "queue", workers: 1))
  end
end
