# frozen_string_literal: true

module Bench
  # Figures as people read them: three digits that mean something, thousands in groups.
  module Figure
    module_function

    # @param value [Numeric, nil]
    # @return [String] "0.583", "12.4", "48,600"; an en dash for nil
    def format(value)
      return "–" unless value
      return "0" if value.zero?

      digits = 3 - Math.log10(value.abs).floor - 1
      rounded = value.round(digits)
      digits.positive? ? Kernel.format("%.#{digits}f", rounded) : grouped(rounded.to_i)
    end

    # @return [String] 100000 as "100,000"
    def grouped(integer) = integer.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")

    # @return [String] how many times as good, "1.32 ×"
    def times(ratio) = ratio ? Kernel.format("%.2f ×", ratio) : "–"
  end
end
