# frozen_string_literal: true

module Bench
  # Heddle as another checkout has it, built there, beside this one's: what a change made faster or slower. The
  # environment variable HEDDLE_BENCH_BEFORE names its folder. Contestants that run Heddle from `root` can be copied so.
  module Before
    FOLDER = ENV.fetch("HEDDLE_BENCH_BEFORE", nil)

    # @param contestants [Array<Contestant>]
    # @return [Array<Contestant>] with the same of the other checkout after each of Heddle's
    def self.beside(contestants)
      return contestants unless FOLDER

      contestants.flat_map { |one| one.respond_to?(:root) && one.role == :heddle ? [one, one.clone.extend(self)] : one }
    end

    def key = "#{super}-before"

    def label = "#{super}, before"

    # It is no peer, and not what the goals are for.
    def role = :baseline

    def root = FOLDER
  end
end
