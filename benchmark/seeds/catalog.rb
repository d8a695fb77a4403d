# frozen_string_literal: true

require "yaml"
require_relative "line"

module Bench
  module Seeds
    # The lines of docs/benchmarks/README.md, as figures.yml has them.
    class Catalog
      PATH = File.expand_path("figures.yml", __dir__)
      RESULTS = File.join(ROOT, "docs", "benchmarks", "results")
      # Each figure has one line at least.
      FIGURES = { "A" => 18, "B" => 6, "C" => 7, "D" => 7, "E" => 8 }
                .flat_map { |letter, count| (1..count).map { |number| "#{letter}#{number}" } }.freeze

      # @return [Array<Line>]
      attr_reader :lines

      # @return [Catalog]
      def self.load(path = PATH, results: RESULTS)
        new(YAML.safe_load_file(path, symbolize_names: true), results:)
      end

      # @param sections [Array<Hash>] each with `title:` and `lines:`
      # @param results [String] the folder with the stored results
      def initialize(sections, results:)
        @sections = sections
        @stored = Hash.new { |files, name| files[name] = StoredResult.new(File.join(results, "#{name}.json")) }
        @lines = sections.flat_map { |section| lines_of(section) }
      end

      # @return [Hash{String => Array<Line>}]
      def sections = @sections.to_h { |section| [section.fetch(:title), lines_of(section)] }

      # @return [Array<StoredResult>] of all files that lines name
      def stored = lines.map(&:file).uniq.to_h { |name| [name, @stored[name]] }

      # @param ids [Array<String>]
      # @param further [Array<String>] options of the benchmarks
      # @return [Array<Array<String>>] the commands, one for all rows of a file
      # @raise [ArgumentError] for a line that there is not
      def measurements(ids, further)
        missing = ids - lines.map(&:id)
        raise ArgumentError, "there is no line #{missing.join(", ")}" unless missing.empty?

        chosen = lines.select { |line| ids.include?(line.id) }
        chosen.group_by { |line| [line.prefix, line.bench, line.options, line.file] }.values.map do |all|
          line = all.first
          ["env", *line.prefix, "bin/bench", line.bench, "--only", all.map(&:row).uniq.join(","), *line.options,
           *further, "--json", "docs/benchmarks/results/#{line.file}.json"]
        end
      end

      private

      def lines_of(section) = section.fetch(:lines).map { |one| Line.new(one, @stored) }
    end
  end
end
