# frozen_string_literal: true

module Trials
  # What four runs of a suite say beside each other.
  class Comparison
    attr_reader :suite, :runs

    # @param runs [Hash{String => WayRun}] by way; `plain` is what the others are held against
    def initialize(suite, runs)
      @suite = suite
      @runs = runs
    end

    def plain = runs.fetch("plain").results
    def examples = plain.size

    # @return [Hash{String => Integer}] how the examples ended on plain Ruby
    def outcomes = plain.values.map { |result| result.start_with?("printed: ") ? "pass" : result }.tally

    # @return [Array<Array(String, String, String, String, String)>] way, example, plain result, result, message
    def differences
      @differences ||= (runs.keys - ["plain"]).flat_map do |way|
        results = runs.fetch(way).results
        (plain.keys | results.keys).filter_map do |example|
          here = results.fetch(example, "not run")
          there = plain.fetch(example, "not run")
          next if suite.passing_only? && there != "pass"

          [way, example, there, here, runs.fetch(way).messages[example].to_s] if here != there
        end
      end
    end

    # @return [Integer] of the examples that pass on plain Ruby, those that pass in this way, too
    def passing(way) = plain.count { |example, result| result == "pass" && runs.fetch(way).results[example] == "pass" }

    # @return [Array] those that no exclusion names
    def unexpected = differences.reject { |way, example,| suite.exclusion(example, way) }

    # @return [Hash{String => Array<String>}] reason => the examples that it excuses
    def expected
      differences.each_with_object({}) do |(way, example, *), reasons|
        entry = suite.exclusion(example, way) or next
        (reasons[entry.fetch("reason")] ||= []) << example
      end.transform_values(&:uniq)
    end
  end
end
