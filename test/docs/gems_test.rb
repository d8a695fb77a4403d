# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "heddle/cli/doctor"
require "trials/matrix/rows"

# The table of docs/gems.md says what `heddle doctor` says, and each row says what was tried.
class GemsPageTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  ROWS = Trials::MatrixRows::ALL
  PAGE = File.read(File.join(ROOT, "docs/gems.md"))[/<!-- matrix: .*? -->\n(.*?)<!-- end of matrix -->/m, 1]
  CELLS = PAGE.lines.drop(2).map { |line| line.delete_prefix("| ").delete_suffix(" |\n").split(" | ") }

  def test_each_gem_has_a_row_with_a_result
    assert_equal ROWS.map(&:name), CELLS.map { |name,| name[/\S+/] }, "run test/trials/matrix/run --write"
    CELLS.each { |cells| assert_equal [4, []], [cells.size, cells.select(&:empty?)], cells.first }
  end

  def test_each_row_says_what_to_configure_as_doctor_does
    assert_equal ROWS.map(&:configure), CELLS.map(&:last), "run test/trials/matrix/run --write"
  end

  def test_page_has_each_gem_that_the_server_changes
    text = File.read(File.join(ROOT, "docs/gems.md"))

    Heddle::Adaptations::TABLE.each { |row| assert_match(/^\| #{row.gem} \| .+ \| #{Regexp.escape(row.changes)} \|$/, text) }
  end

  def test_each_gem_has_a_program_or_a_test
    ROWS.each { |row| assert_path_exists File.join(ROOT, row.place) }
  end

  def test_each_setting_is_of_a_tried_gem
    assert_empty Heddle::CLI::Doctor::GemSettings::ALL.keys - ROWS.map(&:name)
  end
end
