# frozen_string_literal: true

require "fileutils"

module Bench
  # Where the results of a run go.
  class Publication
    FIGURES = /(?<=<!-- figures -->\n).*(?=<!-- end of figures -->)/m

    # @param suite_name [String]
    # @param result [Hash] what Runner#run gave
    # @param root [String] the project's folder
    def initialize(suite_name, result, root: ROOT)
      @name = suite_name
      @result = result
      @root = root
      @report = Report.new(result)
    end

    # Writes result, table and chart to benchmark/results, which is not kept under version control.
    #
    # @return [String] the folder, as seen from the project's
    def save
      folder = File.join("benchmark", "results")
      FileUtils.mkdir_p(File.join(@root, folder))
      { "#{@name}.json" => JSON.pretty_generate(@result), "#{@name}.txt" => @report.to_text,
        "#{@name}.md" => @report.to_markdown, **charts }
        .each { |name, content| File.write(File.join(@root, folder, name), content) }
      folder
    end

    # Puts the figures into the page docs/benchmarks/NAME.md, between its two marks, and the chart beside it.
    #
    # @return [String] the page, as seen from the project's folder
    # @raise [RuntimeError] for a smoke run, whose figures mean nothing; for a run of some rows, which would take the
    #   figures of the others from the page; and for a page without the marks
    def publish
      raise "a --quick run is not published" if @result[:quick]
      raise "a run with --only is not published: the page would lose the figures of the other rows" if @result[:partial]

      page = File.join("docs", "benchmarks", "#{@name}.md")
      path = File.join(@root, page)
      content = File.read(path)
      raise "#{page} has no <!-- figures --> … <!-- end of figures -->" unless content.match?(FIGURES)

      File.write(path, content.sub(FIGURES) { "\n#{@report.to_markdown}\n" })
      charts.each { |name, content| File.write(File.join(@root, "docs", "benchmarks", name), content) }
      page
    end

    private

    # @return [Hash{String => String}] file names and drawings: the values first, then what the suite wants beside them
    def charts
      others = @result.fetch(:charts, []).to_h do |one|
        ["#{@name}-#{one.fetch(:name)}.svg", chart(@report.of(one.fetch(:detail).to_sym, **one.slice(:unit, :title)))]
      end
      { "#{@name}.svg" => chart(@report), **others }
    end

    def chart(report)
      environment = @result.fetch(:environment).transform_keys(&:to_s)
      subtitle = "Ruby #{environment["Ruby"]} · #{environment["kernel"]} · #{environment["cores"]} cores · " \
                 "medians of #{@result.fetch(:rounds)} interleaved rounds · a notched bar is longer than drawn"
      Chart.new(report, subtitle:).to_svg
    end
  end
end
