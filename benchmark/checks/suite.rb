# frozen_string_literal: true

require_relative "tests"

module Bench
  # Promises that tests check: the tests of each, and how many of them fail.
  class ChecksSuite < Suite
    # Heddle, with the tests of this checkout.
    class Checkout < Contestant
      def key = "heddle"
      def label = "Heddle"
      def role = :heddle
      def version = Heddle::VERSION
    end

    def name = "checks"

    def title = "Promises that tests check"

    def rows = @rows ||= Checks::ROWS

    def contestants = @contestants ||= [Checkout.new]

    def probe(contestant, **) = { version: contestant.version }

    def sample(row, _contestant, size, **) = row.measure(size)
  end
end
