# frozen_string_literal: true

module Bench
  # What several samples of one contestant say together.
  module Statistics
    module_function

    # @param samples [Array<Numeric>]
    # @return [Float, nil] the middle value, of an even number the mean of the two middle ones; nil without samples
    def median(samples)
      return if samples.empty?

      sorted = samples.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle].to_f : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # How many times as good `value` is as `reference`: above 1 is better, whichever way the unit points.
    #
    # @param better [Symbol] :lower or :higher
    # @return [Float, nil] nil where either is missing or the division means nothing
    def advantage(value, reference, better:)
      return unless value && reference && value.positive? && reference.positive?

      better == :lower ? reference.fdiv(value) : value.fdiv(reference)
    end

    # @return [Numeric, nil] the best of the values that are there
    def best(values, better:)
      present = values.compact
      better == :lower ? present.min : present.max
    end
  end
end
