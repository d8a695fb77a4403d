# frozen_string_literal: true

require "test_helper"
require_relative "support/finished_run"

class ChartTest < Minitest::Test
  def test_every_row_has_a_panel_with_the_best_first_and_the_failed_last
    labels = svg.scan(%r{<text[^>]*>([^<]*)</text>}).flatten
    fibers = labels[labels.index("s, shorter is better")..labels.index("req/s, longer is better")]

    assert_equal ["Heddle epoll", "0.500", "quick one", "0.750", "slow one", "failed"], fibers[1..6]
  end

  def test_a_bar_is_as_long_as_its_value
    widths = svg.scan(/<rect class="(?:peer|heddle|baseline)"[^>]* width="([\d.]+)"/).flatten.map(&:to_f)

    # fibers: 0.5 and 0.75 of 0.75, then none; server: 90, 40, 30, 20 of 90.
    assert_equal [100.0, 150.0, 0.0, 150.0, 66.7, 50.0, 33.3], widths
  end

  def test_a_bar_that_is_many_times_as_long_as_the_best_is_cut
    rows = [FinishedRun::RESULT[:rows].first.merge(sets: [{ contestant: "ours", samples: [{ value: 1 }] },
                                                          { contestant: "slow", samples: [{ value: 100 }] }])]
    drawn = Bench::Chart.new(Bench::Report.new(FinishedRun::RESULT.merge(rows:)), subtitle: "").to_svg

    assert_equal [25.0, 150.0], drawn.scan(/<rect class="(?:peer|heddle)"[^>]* width="([\d.]+)"/).flatten.map(&:to_f)
    assert_equal 1, drawn.scan("<path").size
  end

  def test_labels_with_markup_are_escaped_in_the_chart
    drawn = Bench::Chart.new(Bench::Report.new(FinishedRun::RESULT), subtitle: "<script> & co").to_svg

    assert_includes drawn, "&lt;script&gt; &amp; co"
  end

  private

  def svg = Bench::Chart.new(Bench::Report.new(FinishedRun::RESULT), subtitle: "two cores").to_svg
end
