# frozen_string_literal: true

# test: nightly

require "test_helper"
require_relative "apm/apm"

# Agents of vendors behind fork, refork and reload: one of them here, and the rows of docs/gems.md for all.
class ApmTrialsTest < Minitest::Test
  PAGE = File.read(File.join(ROOT, "docs/gems.md"))[/<!-- apm: .*? -->\n(.*?)<!-- end of apm -->/m, 1]

  def test_sentry_counts_requests_queue_time_and_processes_right
    skip "needs the gem sentry-ruby: bin/setup" if Gem::Specification.find_all_by_name("sentry-ruby").empty?
    Trials::Apm.new(%w[sentry]).run do |vendor, result|
      assert result.ok?(vendor), "#{result.with(output: nil)}\n#{result.output}"
    end
  end

  def test_page_has_a_row_with_a_result_for_each_vendor
    rows = PAGE.lines.drop(2).map { |line| line.delete_prefix("| ").delete_suffix(" |\n").split(" | ", -1) }

    assert_equal Trials::Apm::VENDORS.map { |vendor| vendor.gems.first }, rows.map { |name,| name[/\S+/] },
                 "run test/trials/apm/run --write"
    results = rows.map { |row| row[1] }

    assert_empty results.grep_v(/\A(?:20 of 20, 20 of 20, 20 of 20|not run, because .+)\z/)
  end
end
