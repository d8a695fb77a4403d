# frozen_string_literal: true

require "test_helper"
require "heddle"

# What the server at boot and heddle doctor say about what keeps requests apart.
class ProtectionTableTest < Minitest::Test
  Table = Heddle::Protection::Table

  def rows(table = Table.new) = table.rows.to_h { |row| [row.name, row] }

  def test_the_table_shows_what_is_on_and_why_the_rest_is_off
    skip "all are on (HEDDLE_TEST_PROTECT)" if ENV["HEDDLE_TEST_PROTECT"]

    Heddle::Protection.during(%i[preempt]) do
      found = rows(Table.new(offload: "option protect, --protect"))

      assert found["preempt"].on
      assert_equal [false, "option protect, --protect"], found["offload of core functions"].deconstruct.drop(1)
      refute found["stall_report"].on
      assert_includes found, "guard pages"
    end
  end

  def test_the_table_shows_offloading_of_rubys_calls_and_of_libraries
    Heddle::Protection.during(%i[offload]) do
      found = rows

      assert_includes [true, false], found["offload of core functions"].on
      refute_empty found["offload of core functions"].text unless found["offload of core functions"].on
      extensions = found["offload of extensions"]
      assert_match(/\A\d+ librar(?:y|ies) loaded\z/, extensions.text) if extensions.on
    end
  end

  def test_the_table_names_the_missing_parts
    table = Table.new
    def table.rows
      [Table::Row.new("one", true, nil), Table::Row.new("two", true, "3"), Table::Row.new("three", false, "too old"),
       Table::Row.new("four", false, "too old"), Table::Row.new("five", false, "no")]
    end

    assert_equal "one, two (3); off: three, four (too old), five (no)", table.to_s
    def table.rows = [Table::Row.new("one", false, nil)]

    assert_equal "none; off: one", table.to_s
  end
end
