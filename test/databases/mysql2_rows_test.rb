# frozen_string_literal: true

require_relative "support/database_programs"

# Reading a result of mysql2 while native calls are offloaded.
class Mysql2RowsTest < Minitest::Test
  include DatabasePrograms

  ROWS = [[1], [2], [3]].freeze

  def seen = @seen ||= database_program("rows_program", "pool", "mysql2", limit: 1)

  def test_small_results_are_read_in_place_and_large_ones_are_offloaded
    assert_operator seen["small"], :<, 20, "calls for a query and 1,000 rows"
    assert_operator seen["large"], :>, 1_000, "calls for a query and 1,001 rows"
  end

  def test_each_way_of_reading_gives_the_rows_that_the_driver_gives
    expected = { "block" => ROWS, "again" => [ROWS], "options" => ROWS, "no_block" => ROWS, "to_a" => ROWS,
                 "not_kept" => ROWS, "statement" => [[1], [2]],
                 "closed_statement" => "Statement handle already closed",
                 "streaming_client" => [[[1]], [[2]]],
                 "break" => [[1], [1], ROWS], "none" => 0, "uncached" => ROWS, "stream" => ROWS, "waiting" => ROWS }

    assert_equal expected, seen["ways"]
  end
end
