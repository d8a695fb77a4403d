# frozen_string_literal: true

module Bench
  module Stalls
    module Rows
      # What the rows have in common: some requests block, and others are measured.
      class StallsRow < Row
        START = 0.3 # seconds until those that block have begun

        attr_reader :key, :title, :goals, :processes

        # @param kind [String] how requests block, a kind of the application's
        # @param blockers [Integer] how many of them
        # @param processes [Integer] that serve
        def initialize(key:, title:, kind:, goals:, blockers: 5, processes: 2)
          super()
          @key = key
          @title = title
          @kind = kind
          @blockers = blockers
          @goals = goals
          @processes = processes
        end

        def sizes(quick:) = { blocked_ms: quick ? 2_000 : 10_000, light_ms: quick ? 300 : 1_000 }

        private

        # Each on a connection of its own, begun when this returns.
        def block(crowd, milliseconds)
          crowd.ask("/#{@kind}/#{milliseconds}", @blockers)
          sleep(START)
        end
      end
    end
  end
end
