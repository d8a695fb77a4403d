# frozen_string_literal: true

module SoakTest
  # The slope of a series by Theil and Sen: the median of the slopes of all pairs. A third of the values may be far off.
  module Slope
    module_function

    # @param points [Array<Array(Numeric, Numeric)>] time and value
    # @return [Float, nil] nil for fewer than two times
    def of(points)
      slopes = points.combination(2).filter_map { |(a, x), (b, y)| (y - x).fdiv(b - a) unless a == b }.sort
      return if slopes.empty?

      middle = slopes.size / 2
      slopes.size.odd? ? slopes[middle] : (slopes[middle - 1] + slopes[middle]) / 2
    end
  end
end
