# frozen_string_literal: true

# What every benchmark suite (`@suite`) keeps to.
module SuitePromises
  def test_rows_and_contestants_have_names_of_their_own
    [@suite.rows, @suite.contestants].each do |things|
      assert_equal things.map(&:key), things.map(&:key).uniq
    end
  end
end

# What a suite keeps to whose rows all have a goal.
module GoalPromises
  def test_every_row_has_a_goal_and_names_its_figures
    @suite.rows.each do |row|
      refute_empty row.goals, row.key
      assert_empty row.shown - row.details, row.key
      assert_empty row.details - Bench::Report::DETAIL_NAMES.keys, row.key
    end
  end
end
