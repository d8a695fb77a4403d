# frozen_string_literal: true

require_relative "slow_gets"

module Bench
  module Rows
    # Three shops are asked for a price, each of which takes a second and a half.
    class FanOut < SlowGets
      def self.variants = [new(1_500)]

      def key = "fan-out"

      def title = "3 Net::HTTP GETs, the servers answer after 1.5 s"

      def sizes(quick:) = { requests: 3, delay: 1.5, quick: }

      def excludes(_contestant) = nil
    end
  end
end
