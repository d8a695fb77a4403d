# frozen_string_literal: true

require_relative "gets"

module Bench
  module Rows
    # Twenty requests to a server that takes a second: a second in all, if nothing blocks.
    class SlowGets < Gets
      def self.variants = [new(1_000)]

      def key = "slow-gets"

      def title = "20 Net::HTTP GETs, the server answers after 1 s"

      def unit = "s"

      def better = :lower

      def details = []

      def sizes(quick:) = { requests: 20, delay: 1.0, quick: }

      def excludes(contestant) = contestant.key == "blocking" ? "20 s by arithmetic" : super

      def measure(contestant, size) = { value: size[:requests] / super[:value] }
    end
  end
end
