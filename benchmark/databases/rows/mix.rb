# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Long queries that compute in the database, among many short ones.
      class Mix < QueryRow
        CONNECTIONS = 12
        # Percent of the time of blocking queries that NeverBlock saved in 2008, for 10, 50 and 100 long queries with so
        # many short ones each.
        SAVED = { 2 => [10.3, 11.2, 13.5], 5 => [27, 32.8, 33.4], 10 => [33.8, 39.7, 38.1], 20 => [38.1, 38.7, 38.1],
                  50 => [36.6, 32.4, 10.9], 100 => [35.4, 30.3, 11.2] }.freeze
        LONG = [10, 50, 100].freeze

        def self.variants
          cells = SAVED.flat_map do |short, saved|
            LONG.zip(saved).map { |long, percent| new(long, short, percent) }
          end
          cells << new(10, 20, nil, database: :mariadb)
        end

        attr_reader :database

        # @param saved [Numeric, nil] percent of the time that must be saved at least
        def initialize(long, short, saved, database: :postgresql)
          super()
          @long, @short, @saved, @database = long, short, saved, database
        end

        def key = "#{"mariadb-" if database == :mariadb}mix-#{@long}-#{@long * @short}"

        def title
          "#{"MariaDB, " if database == :mariadb}#{@long} long and #{Figure.grouped(@long * @short)} short queries"
        end

        def details = [:cpu_us]

        def goals
          return [] unless @saved

          [Goal.new(at_least: (100 / (100.0 - @saved)).round(2), than: "blocking")]
        end

        def sizes(quick:) = quick ? { long: 2, short: @short } : { long: @long, short: @short }

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          items = items(size[:long], size[:short])
          seconds = cpu = nil
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            seconds, cpu = timed { run_all(contestant, items) }
          end
          { value: seconds, cpu_us: cpu * 1e6 / items.size }
        end

        private

        # Each long query is followed by its short ones, which are ids.
        def items(long, short)
          Array.new(long) { |i| [:long, *(1..short).map { |n| (((i * short) + n) % Servers::ITEMS) + 1 }] }.flatten
        end

        def run_all(contestant, items)
          answered = 0
          check_all(contestant.each(items, workers: CONNECTIONS) do |item|
            ask(contestant, item)
            answered += 1
          end)
          check(answered, items.size, "queries answered")
        end

        def ask(contestant, item)
          return check_answer(contestant.query(Queries::LONG), Queries::NONE) if item == :long

          check_answer(contestant.query(Queries.short(item)), item)
        end
      end
    end
  end
end
