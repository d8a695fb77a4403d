# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../support/finished_run"
require_relative "../../../benchmark/seeds/command"

# The lines of a catalog, and the page that is made of them.
class SeedsCatalogTest < Minitest::Test
  LINE = { id: "A1", what: "fibers", reported: "9 s", bench: "scheduler", row: "fibers" }.freeze

  def setup
    @folder = Dir.mktmpdir
    @page = File.join(@folder, "README.md")
    File.write(@page, "before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def store
    Bench::StoredResult.new(File.join(@folder, "scheduler.json"))
                       .add(FinishedRun::RESULT.merge(environment: { "Ruby" => "3.4.11", "date" => "2026-11-27" }),
                            command: "bin/bench scheduler", commit: "01234567").write
  end

  def catalog(*lines) = Bench::Seeds::Catalog.new([{ title: "A", lines: }], results: @folder)

  def line(**change) = catalog(LINE.merge(change)).lines.first

  def page(**change) = Bench::Seeds::Page.new(catalog(LINE.merge(change)), path: @page)

  def test_a_line_shows_the_median_of_heddle_with_its_rounds_and_the_best_peers
    store

    assert_equal "0.500 s (0.400–0.600)", line.now
    assert_equal "quick one: 0.750 s", line.peers
    assert_equal "slow one: failed; quick one: 0.750 s", line(peers: %w[slow quick gone]).peers
  end

  def test_a_line_shows_a_ratio_a_saving_or_a_detail
    store

    assert_equal "1.50 ×", line(as: "ratio", than: "quick").now
    assert_equal "33.3 %", line(as: "saved", than: "quick").now
    assert_equal "0.400 s of CPU", line(show: "cpu_s", unit: "s of CPU").now
  end

  def test_a_line_without_a_result_is_refused_unless_it_says_since_when
    refute_predicate line, :measured?
    assert_includes page.complaints.join("\n"), "A1 (fibers) has no figure: run bin/bench seeds --measure A1"
    refute_includes page(unmeasured: "01234567").complaints.join("\n"), "A1 (fibers)"
    assert_equal "not measured since 01234567", line(unmeasured: "01234567").now
  end

  def test_a_line_with_a_result_may_not_say_that_it_has_none
    store

    assert_includes page(unmeasured: "01234567").complaints.join("\n"), "figures.yml says that it has none"
  end

  def test_a_page_that_differs_from_the_results_is_refused_until_it_is_written
    store

    assert_includes page.complaints.join("\n"), "is not up to date"
    page.write

    refute_includes page.complaints.join("\n"), "is not up to date"
    assert_match(%r{\Abefore\n.*\| A1 \| fibers \| 9 s \| .*`bin/bench scheduler --only fibers` \|.*after\n\z}m,
                 File.read(@page))
    File.write(@page, File.read(@page).sub("0.500 s", "0.400 s"))

    assert_includes page.complaints.join("\n"), "is not up to date"
  end

  def test_a_figure_without_a_line_is_named
    assert_includes page.complaints, "E8 has no line in figures.yml"
  end

  def test_the_rows_of_one_file_are_measured_by_one_command
    lines = [LINE, LINE.merge(row: "pipe"), LINE.merge(file: "scheduler-yjit", environment: { HEDDLE_RUBY: "ruby4.0" })]
    commands = catalog(*lines).measurements(["A1"], %w[--rounds 3])

    assert_equal ["env bin/bench scheduler --only fibers,pipe --rounds 3 --json docs/benchmarks/results/scheduler.json",
                  "env HEDDLE_RUBY=ruby4.0 bin/bench scheduler --only fibers --rounds 3 " \
                  "--json docs/benchmarks/results/scheduler-yjit.json"],
                 commands.map { |command| command.join(" ") }
    assert_raises(ArgumentError) { catalog(LINE).measurements(["Z9"], []) }
  end
end
