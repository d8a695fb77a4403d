# frozen_string_literal: true

module Heddle
  # Validates time limits and intervals that a program passes.
  # @api private
  module Seconds
    class << self
      # @param seconds [Object]
      # @return [Numeric] the interval, which is finite and greater than 0
      # @raise [ArgumentError]
      def interval(seconds)
        return seconds if length?(seconds)

        raise ArgumentError, "the interval is #{seconds.inspect}, but must be a positive number of seconds"
      end

      # @param name [String] the name of the time limit, for the error message
      # @param seconds [Object]
      # @return [Numeric, nil] the time limit, which is finite and greater than 0; nil: no limit
      # @raise [ArgumentError]
      def limit(name, seconds)
        return seconds if seconds.nil? || length?(seconds)

        raise ArgumentError, "#{name} is #{seconds.inspect}, but must be a positive number of seconds, or nil"
      end

      private

      def length?(value) = value.is_a?(Numeric) && value.positive? && value.finite?
    end
  end
end
