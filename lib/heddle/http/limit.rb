# frozen_string_literal: true

module Heddle
  module HTTP
    # The largest value that a limit may have, by its unit: a petabyte, a day, a million.
    MAXIMA = { bytes: 1 << 50, rate: 1 << 50, seconds: 86_400, count: 1_000_000 }.freeze
    private_constant :MAXIMA

    # The definition of one limit or switch. The list of all is {Limits::ALL}.
    #
    # @!attribute name [Symbol]
    # @!attribute unit [Symbol] :bytes, :count, :seconds, :rate (bytes a second) or :switch
    # @!attribute default [Integer, Float, Boolean]
    # @!attribute minimum [Integer, Float, nil] the least allowed value
    # @!attribute maximum [Integer, Float, nil] the largest allowed value; by default {MAXIMA} of its unit
    # @!attribute text [String] what it limits and what happens beyond it
    Limit = Data.define(:name, :unit, :default, :minimum, :text, :maximum) do
      def initialize(name:, unit:, default:, minimum:, text:, maximum: MAXIMA[unit]) = super

      # @raise [ArgumentError] naming the limit, when the value does not fit
      # @return [Integer, Float, Boolean] the value
      def check(value)
        return check_switch(value) if unit == :switch

        fits = unit == :seconds ? value.is_a?(Numeric) : value.is_a?(Integer)
        raise ArgumentError, "#{name} must be a number of #{unit}, but is #{value.inspect}" unless fits
        raise ArgumentError, "#{name} must be at least #{amount(minimum)}, but is #{value}" if value < minimum
        raise ArgumentError, "#{name} must be at most #{amount(maximum)}, but is #{value}" if maximum && value > maximum

        value
      end

      private

      def amount(value) = unit == :count ? value.to_s : "#{value} #{unit}"

      def check_switch(value)
        return value if [true, false].include?(value)

        raise ArgumentError, "#{name} must be true or false, but is #{value.inspect}"
      end
    end
  end
end
