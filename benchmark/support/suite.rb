# frozen_string_literal: true

module Bench
  # What is compared with what: the rows and the contestants of one benchmark.
  class Suite
    # @param name [String] the name of its folder below benchmark/
    # @return [Suite]
    def self.load(name)
      library = File.join(ROOT, "lib")
      $LOAD_PATH.unshift(library) unless $LOAD_PATH.include?(library)
      require File.join(ROOT, "benchmark", name, "suite")
      Bench.const_get("#{name.capitalize}Suite").new
    end

    # @return [String]
    def name = raise(NotImplementedError)

    # @return [String]
    def title = raise(NotImplementedError)

    # @return [Array<Row>] in the order of the table
    def rows = raise(NotImplementedError)

    # @return [Array<Contestant>] in the order of the columns
    def contestants = raise(NotImplementedError)

    # @return [Row]
    # @raise [ArgumentError] that names the rows there are
    def row(key) = named(rows, key, "row")

    # @return [Contestant]
    # @raise [ArgumentError] that names the contestants there are
    def contestant(key) = named(contestants, key, "contestant")

    private

    def named(things, key, kind)
      things.find { |thing| thing.key == key } ||
        raise(ArgumentError, "no #{kind} is called #{key}; there are: #{things.map(&:key).join(", ")}")
    end
  end
end
