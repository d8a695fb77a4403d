# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"

class TableTest < Minitest::Test
  TABLE = Bench::Table.new(["", "µs"], [["ping-pong", "12.4"], ["a|b", "1,234"]])

  def test_text_has_labels_to_the_left_and_figures_to_the_right
    assert_equal <<~TEXT, TABLE.to_text
                    µs
      ---------  -----
      ping-pong   12.4
      a|b        1,234
    TEXT
  end

  def test_markdown_escapes_what_would_end_a_cell
    assert_equal <<~'TEXT', TABLE.to_markdown
      |  | µs |
      | --- | ---: |
      | ping-pong | 12.4 |
      | a\|b | 1,234 |
    TEXT
  end
end
