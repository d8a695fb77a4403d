# frozen_string_literal: true

module Heddle
  class Server
    # Adds up the statistics of several loops in a process.
    module Statistics
      # For these names, the result has the maximum of the loops' values instead of their sum: the values are the same
      # in all loops, or only the worst one matters.
      GREATEST = %i[lag heartbeat_age memory].freeze
      private_constant :GREATEST

      # @param all [Array<Hash>] at least one {Serving#statistics}
      # @return [Hash]
      def self.sum(all)
        all.first.to_h do |name, value|
          values = all.map { |one| one[name] }
          [name, case value
                 when true, false then values.any?
                 else combined(name, values)
                 end]
        end
      end

      # @param one [Numeric, Array, Hash] counts
      # @param other [Numeric, Array, Hash] of the same shape as `one`, except that a Hash may have other keys
      # @return [Numeric, Array, Hash] the sums, of the same shape
      def self.add(one, other)
        case one
        when Hash then one.merge(other) { |_, mine, more| add(mine, more) }
        when Array then one.zip(other).map { |mine, more| add(mine, more) }
        else one + other
        end
      end

      def self.combined(name, values)
        return values.compact.first if name == :limited_by
        # :serving is greater than :parked, so the result is :serving if any loop serves.
        return (values.max unless values.include?(nil)) if name == :reserve
        # nil means that a loop has no limit. If one loop has no limit, all loops together have none.
        return (values.sum unless values.include?(nil)) if name == :limit

        GREATEST.include?(name) ? values.compact.max : values.sum
      end
      private_class_method :combined
    end
  end
end
