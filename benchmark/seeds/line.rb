# frozen_string_literal: true

module Bench
  module Seeds
    # One published figure, and what is stored of its repetition.
    class Line
      PEERS = 3 # at most, the best ones

      # @param data [Hash] of figures.yml: `id`, `what`, `reported`, `bench`, `row`; where they differ from what is
      #   usual `file` (of the results), `environment` and `options` of the command, `whose` (the contestant of
      #   Heddle's), `peers`, `show` and `unit` (a detail in place of the value), `as` with `than` (`ratio`, `saved`),
      #   `tests`; and `unmeasured`, the commit since which there is no figure
      # @param stored [Hash{String => StoredResult}] by file
      def initialize(data, stored)
        @data = data
        @stored = stored
      end

      # @return [String]
      def id = @data.fetch(:id)

      def what = @data.fetch(:what)

      def reported = @data.fetch(:reported)

      def bench = @data.fetch(:bench)

      def row = @data.fetch(:row)

      def file = @data.fetch(:file, bench)

      # @return [Array<String>] environment variables of the command
      def prefix = @data.fetch(:environment, {}).map { |name, value| "#{name}=#{value}" }

      def options = @data.fetch(:options, "").split

      # @return [String] that repeats the measurement
      def command = [*prefix, "bin/bench", bench, "--only", row, *options].join(" ")

      # @return [String, nil] the commit since which there is no figure
      def unmeasured = @data[:unmeasured]

      # @return [Boolean] whether a figure of Heddle's is stored, and the one that it is compared with
      def measured? = !run.nil? && !ours.nil? && (!@data[:than] || !set(@data[:than]).nil?)

      # @return [Hash, nil] the stored run
      def run = found&.first

      # @return [String]
      def now = measured? ? figure(ours) : "not measured since #{unmeasured}"

      # @return [String]
      def peers
        words = peer_sets.map { |set| "#{label(set)}: #{set[:failure] ? "failed" : figure(set, spread: false)}" }
        words.empty? ? "–" : words.join("; ")
      end

      # @return [Array<String>] contestants that figures.yml names
      def named = [@data[:whose], @data[:than], *@data[:peers]].compact

      private

      def found = @stored[file].find(row)

      def sets = found.last.fetch(:sets)

      def ours
        return set(@data[:whose]) if @data[:whose]

        best(sets.select { |set| role(set) == "heddle" && set[:median] }).first
      end

      def set(key) = key && sets.find { |set| set[:contestant] == key && set[:median] }

      def peer_sets
        return [] unless measured?
        return @data[:peers].filter_map { |key| sets.find { |set| set[:contestant] == key } } if @data[:peers]

        best(sets.select { |set| role(set) == "peer" && set[:median] }).first(PEERS)
      end

      def best(sets)
        sorted = sets.sort_by { |set| set[:median] }
        found.last[:better] == "higher" ? sorted.reverse : sorted
      end

      def role(set) = contestant(set)[:role]

      def label(set) = contestant(set)[:label]

      def contestant(set) = run.fetch(:contestants).find { |one| one[:key] == set[:contestant] }

      # @return [String] "41,200 req/s (40,100–42,300)"
      def figure(set, spread: true)
        case @data[:as]
        when "ratio" then Figure.times(ratio(set))
        when "saved" then "#{((1 - (1 / ratio(set))) * 100).round(1)} %"
        when "tests" then "#{set[:median].round} of #{set[:tests].round} tests failed"
        else plain(set, spread)
        end
      end

      # How many times as good as the contestant `than`.
      def ratio(set)
        other = set(@data.fetch(:than)).fetch(:median)
        Statistics.advantage(set[:median], other, better: found.last[:better].to_sym)
      end

      def plain(set, spread)
        return [Figure.format(set.fetch(@data[:show].to_sym)), @data.fetch(:unit)].join(" ") if @data[:show]

        words = "#{Figure.format(set[:median])} #{found.last[:unit]}"
        return words if !spread || set[:least] == set[:greatest]

        "#{words} (#{Figure.format(set[:least])}–#{Figure.format(set[:greatest])})"
      end
    end
  end
end
