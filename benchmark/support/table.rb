# frozen_string_literal: true

module Bench
  # Rows and columns as plain text for a terminal and as Markdown for a page.
  class Table
    # @param headings [Array<String>]
    # @param lines [Array<Array<String>>] the first cell of each is a label, the others are figures
    def initialize(headings, lines)
      @headings = headings
      @lines = lines
    end

    # @return [String] columns padded with spaces, labels to the left and figures to the right
    def to_text
      rule = widths.map { |width| "-" * width }.join("  ")
      [pad(@headings), rule, *@lines.map { |line| pad(line) }].join("\n") << "\n"
    end

    # @return [String]
    def to_markdown
      rule = @headings.each_index.map { |index| index.zero? ? "---" : "---:" }
      [@headings, rule, *@lines].map { |line| "| #{line.map { |cell| escape(cell) }.join(" | ")} |" }.join("\n") << "\n"
    end

    private

    def widths
      @widths ||= [@headings, *@lines].transpose.map { |column| column.map { |cell| cell.to_s.length }.max }
    end

    def pad(line)
      line.each_with_index.map do |cell, index|
        index.zero? ? cell.to_s.ljust(widths[index]) : cell.to_s.rjust(widths[index])
      end.join("  ").rstrip
    end

    def escape(cell) = cell.to_s.gsub("|", "\\|")
  end
end
