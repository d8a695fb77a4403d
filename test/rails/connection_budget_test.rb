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
    assert_equal "pool 5, workers 2 → at most 10 connections of the server's 100", text
  end

  def test_the_notice_warns_when_the_database_has_too_few_connections
    assert_equal "pool 60, workers 2 → at most 120 connections, but the server has 100: make the pool smaller, " \
                 "or let the server have more", text(pool: 60)
  end

  def test_a_database_that_could_not_be_asked_is_left_out
    assert_equal "pool 5, workers 2 → at most 10 connections", text(most: nil)
    assert_equal "pool 5, workers 2, reserves 1 → at most 15 connections", text(most: nil, reserves: 1)
  end

  def test_the_notice_names_each_of_several_databases
    assert_equal "queue: pool 5, workers 1 → at most 5 connections of the server's 100", text(name: "queue", workers: 1)
  end
end
