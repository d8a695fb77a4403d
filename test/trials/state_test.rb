# frozen_string_literal: true

require "test_helper"
require_relative "state/state"

# State that gems keep by thread belongs to the request: those that are installed here, of the gems in docs/gems.md.
class StateTrialsTest < Minitest::Test
  PAGE = File.read(File.join(ROOT, "docs/gems.md"))[/<!-- state: .*? -->\n(.*?)<!-- end of state -->/m, 1]

  def test_twenty_overlapping_requests_see_their_own_values
    names = %w[activesupport concurrent-ruby i18n request_store]
    found = Trials::State.new(names, install: false).run

    found.each do |name, (version, results)|
      skip "needs the gem #{name}: bin/setup" if version.empty?
      assert_operator results.size, :>=, 1
      results.each { |result| assert_predicate result, :ok?, "#{name}: #{result.errors}" }
    end
  end

  def test_page_has_fifty_gems_and_the_result_of_each_line
    rows = PAGE.lines.drop(2).map { |line| line.delete_prefix("| ").delete_suffix(" |\n").split(" | ", -1) }
    lines = Trials::State::GEMS.flat_map { |row| row["lines"].to_a.map { |line| line["line"] } }

    assert_equal 50, Trials::State::GEMS.size
    assert_equal Trials::State::GEMS.map { |row| row["gem"] }, rows.filter_map { |name,| name[/\S+/] },
                 "run test/trials/state/run --write"
    assert_equal lines, rows.filter_map { |_, line,| line[/`(.+)`/, 1]&.gsub("\\|", "|") }
    assert_equal ["20 of 20"] * lines.size, rows.filter_map { |_, line, result| result if line.start_with?("`") }
  end
end
