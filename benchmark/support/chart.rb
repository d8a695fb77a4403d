# frozen_string_literal: true

require "cgi/escape"

module Bench
  # One SVG of a whole run: a panel for each row, a bar for each contestant, best first. Heddle's bars have a colour of
  # their own; the drawing follows the reader's light or dark mode.
  class Chart
    COLUMNS = 3
    PANEL_WIDTH = 340
    GAP = 24
    MARGIN = 24
    HEADER = 64
    TITLE_LINE = 16
    TITLE_CHARACTERS = 46
    BAR = 14
    STEP = 20
    NAME_WIDTH = 112
    BAR_WIDTH = 150
    # Where short bars are good, one that is a hundred times as long as the best would leave nothing of the others.
    CUT = 6
    STYLE = <<~CSS
      .paper{fill:#ffffff}.ink{fill:#1f2328}.quiet{fill:#656d76}.track{fill:#eef1f4}
      .peer{fill:#9aa5b1}.baseline{fill:#cfd6dd}.heddle{fill:#c2410c}
      text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
      .heading{font-size:20px;font-weight:600}.title{font-weight:600}.strong{font-weight:600}
      @media (prefers-color-scheme:dark){.paper{fill:#0d1117}.ink{fill:#e6edf3}.quiet{fill:#8d96a0}.track{fill:#1c232b}
      .peer{fill:#6b7785}.baseline{fill:#3d4650}.heddle{fill:#f97316}}
    CSS

    # @param report [Report]
    # @param subtitle [String] one line on the circumstances
    def initialize(report, subtitle:)
      @report = report
      @subtitle = subtitle
      @rows = report.rows.select { |row| row.sets.any?(&:complete?) }
    end

    # @return [String] a whole SVG document
    def to_svg
      body, height = panels
      width = (MARGIN * 2) + (COLUMNS * PANEL_WIDTH) + ((COLUMNS - 1) * GAP)
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" role="img" aria-label="#{escape(@report.title)}">
        <style>#{STYLE}</style>
        <rect class="paper" width="#{width}" height="#{height}"/>
        #{text(MARGIN, 34, @report.title, "ink heading")}
        #{text(MARGIN, 54, @subtitle, "quiet")}
        #{body}
        </svg>
      SVG
    end

    private

    def panels
      top = MARGIN + HEADER
      drawn = @rows.each_slice(COLUMNS).map do |slice|
        line = slice.each_with_index.map { |row, index| panel(row, MARGIN + (index * (PANEL_WIDTH + GAP)), top) }
        top += slice.map { |row| panel_height(row) }.max + GAP
        line.join("\n")
      end
      [drawn.join("\n"), top]
    end

    def panel_height(row) = (title_lines(row).size * TITLE_LINE) + TITLE_LINE + 10 + (row.sets.size * STEP)

    def panel(row, left, top)
      lines = title_lines(row)
      drawn = lines.each_with_index.map { |line, index| text(left, top + (index * TITLE_LINE), line, "ink title") }
      top += lines.size * TITLE_LINE
      drawn << text(left, top, "#{row.unit}, #{row.better == :lower ? "shorter" : "longer"} is better", "quiet")
      longest = scale(row)
      ranked(row).each_with_index { |set, index| drawn << bar(row, set, longest, left, top + 10 + (index * STEP)) }
      drawn.join("\n")
    end

    # @return [Float] the value whose bar is as long as a bar can be
    def scale(row)
      medians = row.sets.select(&:complete?).map(&:median)
      row.better == :lower ? [medians.max, medians.min * CUT].min : medians.max
    end

    # The best first; what failed comes last and says so.
    def ranked(row)
      finished, failed = row.sets.partition(&:complete?)
      finished = finished.sort_by(&:median)
      finished.reverse! if row.better == :higher
      finished + failed
    end

    def bar(row, set, longest, left, top)
      ours = row.role(set) == :heddle
      start = left + NAME_WIDTH
      share = set.complete? && longest.positive? ? set.median / longest : 0
      cut = share > 1
      [text(left, top + 11, row.label(set), ours ? "ink strong" : "ink"),
       %(<rect class="track" x="#{start}" y="#{top}" width="#{BAR_WIDTH}" height="#{BAR}" rx="2"/>),
       %(<rect class="#{row.role(set)}" x="#{start}" y="#{top}" ) +
         %(width="#{(BAR_WIDTH * [share, 1].min).round(1)}" height="#{BAR}" rx="2"/>),
       (%(<path class="paper" d="M#{start + BAR_WIDTH - 14} #{top + BAR}l6 -#{BAR}h4l-6 #{BAR}z"/>) if cut),
       text(start + BAR_WIDTH + 6, top + 11, row.cell(set), ours ? "ink strong" : "quiet")].compact.join("\n")
    end

    def title_lines(row) = row.title.scan(/\S.{0,#{TITLE_CHARACTERS - 1}}(?=\s|\z)/)

    def text(left, baseline, words, kind) = %(<text class="#{kind}" x="#{left}" y="#{baseline}">#{escape(words)}</text>)

    def escape(words) = CGI.escapeHTML(words.to_s)
  end
end
