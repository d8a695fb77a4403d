# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"
require_relative "../../../benchmark/seeds/command"

# docs/benchmarks/README.md: a line for each published figure, with what is stored and the command that repeats it.
class PublishedFiguresTest < Minitest::Test
  def catalog = @catalog ||= Bench::Seeds::Catalog.load

  # @return [Bench::Suite] one of each name: the programs of a benchmark need not be installed
  def suite(name) = (@suites ||= Hash.new { |all, key| all[key] = Bench::Suite.load(key) })[name]

  def test_every_figure_has_a_line_with_its_stored_result_and_the_page_shows_it
    assert_empty Bench::Seeds::Page.new(catalog).complaints
  end

  def test_every_command_runs_a_row_and_names_contestants_that_there_are
    catalog.lines.each do |line|
      assert_path_exists File.join(ROOT, "benchmark", "#{line.bench}.rb")
      suite(line.bench).row(line.row)
      line.named.each { |key| suite(line.bench).contestant(key) }
    end
  end

  def test_every_stored_result_has_what_a_reader_needs_to_judge_it
    catalog.stored.each do |name, stored|
      stored.runs.each do |run|
        assert_match(/\A\h{8}\z/, run[:commit], "#{name}: the commit, without changes of its own")
        assert_match(/\A\d{4}-\d\d-\d\d\z/, run[:date], name)
        assert_operator run[:rounds], :>, 0, name
        assert_includes run[:command], "bin/bench ", name
        %i[Ruby processor cores kernel].each { |field| refute_nil run[:environment][field], "#{name}: #{field}" }
        run[:contestants].each { |one| refute_empty one[:version].to_s, "#{name}: #{one[:key]}" }
      end
    end
  end

  def test_results_are_small
    files = Dir[File.join(Bench::Seeds::Catalog::RESULTS, "*")]

    assert_empty files.map { |path| File.basename(path, ".json") } - catalog.lines.map(&:file)
    assert_operator files.sum { |path| File.size(path) }, :<, 200_000
  end

  def test_checks_name_tests_that_there_are
    suite("checks").rows.flat_map(&:files).each { |file| assert_path_exists File.join(ROOT, file) }
  end
end
