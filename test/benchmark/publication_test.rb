# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "support/finished_run"

class PublicationTest < Minitest::Test
  def test_results_are_saved_beside_the_benchmarks
    Dir.mktmpdir do |root|
      publication(root).save

      assert_equal %w[scheduler.json scheduler.md scheduler.svg scheduler.txt],
                   Dir.children(File.join(root, "benchmark/results")).sort
    end
  end

  def test_the_page_gets_the_figures_between_its_marks_and_keeps_the_rest
    with_page("before\n<!-- figures -->\nold\n<!-- end of figures -->\nafter\n") do |root, page|
      2.times { publication(root).publish }
      content = File.read(page)

      assert_match(/\Abefore\n<!-- figures -->\n.*1\.50 × quick one.*<!-- end of figures -->\nafter\n\z/m, content)
      refute_includes content, "old"
      assert_equal 1, content.scan("### Contestants").size
      assert_path_exists File.join(root, "docs/benchmarks/scheduler.svg")
    end
  end

  def test_further_charts_lie_beside_the_first
    charts = [{ name: "cpu", detail: "cpu_s", unit: "CPU s", title: "CPU time" }]
    with_page("<!-- figures -->\n<!-- end of figures -->") do |root, page|
      publication(root, charts:).publish
      drawn = File.read(File.join(File.dirname(page), "scheduler-cpu.svg"))

      assert_includes drawn, "CPU time"
      assert_includes drawn, "0.400"
    end
  end

  def test_a_smoke_run_and_a_page_without_marks_are_refused
    with_page("nothing to fill") do |root, _|
      assert_raises(RuntimeError) { publication(root).publish }
      assert_raises(RuntimeError) { publication(root, quick: true).publish }
    end
  end

  def test_a_run_of_some_rows_does_not_take_the_others_from_the_page
    with_page("<!-- figures -->\nold\n<!-- end of figures -->\n") do |root, page|
      error = assert_raises(RuntimeError) { publication(root, partial: true).publish }

      assert_includes error.message, "--only"
      assert_includes File.read(page), "old"
    end
  end

  private

  def publication(root, **change) = Bench::Publication.new("scheduler", FinishedRun::RESULT.merge(change), root:)

  def with_page(content)
    Dir.mktmpdir do |root|
      page = File.join(root, "docs/benchmarks/scheduler.md")
      FileUtils.mkdir_p(File.dirname(page))
      File.write(page, content)
      yield root, page
    end
  end
end
