# frozen_string_literal: true

require_relative "statistics"

module Bench
  # All samples of one contestant in one row, or the reason why there are none.
  class SampleSet
    attr_reader :contestant, :samples, :failure, :exclusion

    # @param contestant [String] its key
    # @param samples [Array<Hash>] each with :value and whatever else the row measured beside it
    # @param failure [String, nil] why the row could not be run, or not to the end
    # @param exclusion [String, nil] why it does not take part
    def initialize(contestant, samples: [], failure: nil, exclusion: nil)
      @contestant = contestant
      @samples = samples
      @failure = failure
      @exclusion = exclusion
    end

    def add(sample) = @samples << sample

    def fail(reason) = @failure = reason

    def exclude(reason) = @exclusion = reason

    def median(key = :value) = Statistics.median(values(key))

    def min(key = :value) = values(key).min

    def max(key = :value) = values(key).max

    # Whether there is a figure to compare. One failed round spoils the whole: a contestant that sometimes does not
    # finish has no median.
    def complete? = failure.nil? && !values(:value).empty?

    # @return [Array<String>] what the samples had to say beside figures, each said once
    def notes = samples.filter_map { |sample| sample[:note] }.uniq

    def to_h = { contestant:, samples:, failure:, exclusion: }

    private

    def values(key) = samples.filter_map { |sample| sample[key] }
  end
end
