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
      Bench.const_get("#{name.split("-").map(&:capitalize).join}Suite").new
    end

    # @return [String]
    def name = raise(NotImplementedError)

    # @return [String]
    def title = raise(NotImplementedError)

    # @return [Array<Row>] in the order of the table
    def rows = raise(NotImplementedError)

    # @return [Array<Contestant>] in the order of the columns
    def contestants = raise(NotImplementedError)

    # @return [Array<Contestant>] those, and Heddle as another checkout has it where one is named; see Before
    def participants = @participants ||= Before.beside(contestants)

    # @return [String, nil] the contestant that has a column of ratios of its own, beside the best peer's
    def reference = nil

    # @return [Array<Hash>] charts beside the one of the values: :detail, :unit and :title of each
    def charts = []

    # @return [String, nil] what the figures' legend says about Heddle
    def legend = nil

    # Asks whether the contestant works here at all.
    #
    # @param ruby_flags [Array<String>]
    # @return [Hash] :version, or :failure with the reason why it is not here
    # @raise [Child::Failed]
    def probe(contestant, ruby_flags:)
      child = start("probe", contestant, {}, ruby_flags:, time_limit: 20)
      child.message
    ensure
      child&.close
    end

    # Takes one sample, in a new process.
    #
    # @param size [Hash] what the row's `sizes` and `around` gave
    # @return [Hash] :value, and whatever the row measures beside it
    # @raise [Child::Failed]
    def sample(row, contestant, size, ruby_flags:)
      child = start(row.key, contestant, size, ruby_flags:, time_limit: row.time_limit, core: row.core)
      row.drive(child, size)
    ensure
      child&.close
    end

    # @return [Row]
    # @raise [ArgumentError] that names the rows there are
    def row(key) = named(rows, key, "row")

    # @return [Contestant]
    # @raise [ArgumentError] that names the contestants there are
    def contestant(key) = named(participants, key, "contestant")

    private

    def start(row_key, contestant, size, ruby_flags:, time_limit:, core: nil)
      Child.new([name, row_key, contestant.key, JSON.generate(size)],
                environment: contestant.environment, ruby_flags:, core:, time_limit:)
    end

    def named(things, key, kind)
      things.find { |thing| thing.key == key } ||
        raise(ArgumentError, "no #{kind} is called #{key}; there are: #{things.map(&:key).join(", ")}")
    end
  end
end
