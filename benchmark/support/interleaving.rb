# frozen_string_literal: true

module Bench
  # The order of samples: A B C, A B C, … and never A A A, B B B, so that a machine that grows warm, or a neighbour
  # that comes and goes, meets every contestant alike.
  module Interleaving
    module_function

    # @param contestants [Array]
    # @param rounds [Integer]
    # @yieldparam round [Integer] from 1
    # @yieldparam contestant what was handed in. When the block returns :drop, the contestant is left out of the
    #   rounds that follow: one that fails or hangs does so once, not five times.
    # @return [void]
    def each(contestants, rounds)
      running = contestants.dup
      1.upto(rounds) do |round|
        running.reject! { |contestant| yield(round, contestant) == :drop }
      end
    end
  end
end
