# frozen_string_literal: true

require_relative "support/database_programs"

# Transactions of Sequel that are interrupted before they begin, or after they have ended.
class SequelTransactionsTest < Minitest::Test
  include DatabasePrograms

  DatabasePrograms::DRIVERS.each do |driver|
    define_method("test_an_interrupted_transaction_stays_in_no_list_with_#{driver}") do
      seen = database_program("contended_program", "sequel", driver, limit: 1)

      assert_equal ["cancel add_transaction", "cancel remove_transaction", "kill add_transaction",
                    "kill remove_transaction"], seen.keys.sort
      assert_equal [0], seen.values.map(&:last).uniq, seen
      assert_empty seen.values.map(&:first) - [nil, 42], "the task ended in time, or was interrupted"
    end
  end

  %w[trilogy mysql2].each do |driver|
    define_method("test_the_first_transaction_can_be_interrupted_with_#{driver}") do
      seen = database_program("first_transaction_program", "sequel", driver, limit: 1)

      assert_equal({ "outcomes" => [nil] * 4, "open" => 0 }, seen)
    end
  end
end
