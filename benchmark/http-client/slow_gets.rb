# frozen_string_literal: true

require_relative "gets"

module Bench
  module Rows
    # A thousand GETs at once, to a server that takes its time: connecting is part of it.
    class ClientSlowGets < ClientGets
      # Of the seeds: requests a second, by the server's delay in milliseconds.
      GOALS = { 0 => 2_360, 10 => 1_997, 50 => 1_837, 100 => 1_656, 500 => 1_500 }.freeze

      def self.variants = GOALS.keys.map { |delay| new(delay) }

      def initialize(delay)
        super(1_000)
        @delay = delay
      end

      def key = "slow-#{@delay}"

      def title = "1,000 GETs at once with connecting, the server answers after #{@delay} ms"

      def goals = [Goal.new(at_least: GOALS.fetch(@delay), unit: "req/s")]

      def sizes(quick:) = { requests: @tasks, quick: }

      private

      def path = "/#{@delay / 1_000.0}"

      def warm_up(_contestant) = nil
    end
  end
end
