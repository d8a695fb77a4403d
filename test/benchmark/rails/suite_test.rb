# frozen_string_literal: true

require "test_helper"
require "stringio"
require_relative "../../../benchmark/support/bench"

class RailsBenchmarkSuiteTest < Minitest::Test
  def setup
    missing = %w[activerecord actionpack pg].find { |name| Gem::Specification.find_all_by_name(name).empty? }
    skip "needs the gem #{missing}: bin/setup" if missing
    @suite = Bench::Suite.load("rails")
  end

  def test_heddle_stands_beside_puma_and_falcon
    assert_equal %w[heddle heddle-refork puma falcon], @suite.contestants.map(&:key)
    assert_equal %w[page slow-page board], @suite.rows.map(&:key)
  end

  def test_every_row_names_its_figures
    @suite.rows.each do |row|
      assert_empty row.shown - row.details, row.key
      assert_empty row.details - Bench::Report::DETAIL_NAMES.keys, row.key
    end
  end

  def test_heddle_serves_the_page
    need_program("wrk")
    need_program("postgres") unless Bench::RailsPage::Database.installed?
    options = Bench::Options.new(["--quick", "--only", "page", "--contestants", "heddle", "--rounds", "1"])
    set = Bench::Report.new(Bench::Runner.new(@suite, options, output: StringIO.new).run).rows.first.set("heddle")

    assert_predicate set, :complete?, set.failure
    %i[value per_core p50_ms p99_ms].each { |figure| assert_operator set.median(figure), :>, 0, figure }
  end
end
