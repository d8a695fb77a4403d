# frozen_string_literal: true

module Bench
  # One row of a finished run: how fast each contestant was, and how Heddle compares with the best of the others.
  class RowResult
    attr_reader :key, :title, :unit, :better, :details, :shown

    # @param row [Hash] what Runner made of it
    # @param contestants [Array<Hash>] key, label and role of each
    def initialize(row, contestants)
      @key, @title, @unit = row.values_at(:key, :title, :unit)
      @better = row.fetch(:better).to_sym
      @compared = row.fetch(:compared, true)
      @details = row.fetch(:details).map(&:to_sym)
      @shown = row.fetch(:shown, []).map(&:to_sym)
      @goals = row.fetch(:goals, []).map { |goal| Goal.new(**goal) }
      @contestants = contestants.to_h { |contestant| [contestant[:key], contestant] }
      @sets = row.fetch(:sets).to_h do |set|
        [set[:contestant], SampleSet.new(set[:contestant], **set.slice(:samples, :failure, :exclusion))]
      end
    end

    # @return [Array<SampleSet>] of all that took part, in the order of the columns
    def sets = @sets.values.reject(&:exclusion)

    # @return [SampleSet, nil]
    def set(contestant_key) = @sets[contestant_key]

    # @return [String]
    def label(set) = @contestants.fetch(set.contestant).fetch(:label)

    # @return [Symbol]
    def role(set) = @contestants.fetch(set.contestant).fetch(:role).to_sym

    # @return [SampleSet, nil] nil when no peer finished
    def best_peer = best(:peer)

    # @return [SampleSet, nil]
    def best_heddle = best(:heddle)

    # @return [Float, nil] how many times as good as the best peer; above 1 is ahead
    def advantage(set)
      ratio(set, best_peer) if @compared
    end

    # @return [Float, nil] how many times as good as another one
    def ratio(set, other)
      Statistics.advantage(set.median, other.median, better:) if set&.complete? && other&.complete?
    end

    # @return [Array<String>] each goal of the row and whether Heddle reached it
    def verdicts = @goals.map { |goal| goal.verdict(self) }

    # @return [String] the median, marked if there were errors, or in one word why there is none
    def cell(set, key = :value)
      return "–" if set.nil? || set.exclusion
      return key == :value ? "failed" : "–" unless set.complete?

      "#{Figure.format(set.median(key))}#{"†" if key == :value && erred?(set)}"
    end

    # @return [Boolean] whether requests failed in any round
    def erred?(set) = set.samples.any? { |sample| sample[:errors]&.positive? }

    private

    def best(role)
      finished = sets.select { |set| set.complete? && role(set) == role }
      better == :lower ? finished.min_by(&:median) : finished.max_by(&:median)
    end
  end
end
