# frozen_string_literal: true

# What every benchmark suite (`@suite`) keeps to.
module SuitePromises
  def test_rows_and_contestants_have_names_of_their_own
    [@suite.rows, @suite.contestants].each do |things|
      assert_equal things.map(&:key), things.map(&:key).uniq
    end
  end
end
