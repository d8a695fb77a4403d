# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # A row with a database of its own.
      class QueryRow < Row
        WARM_UP = 0.2 # seconds
        private_constant :WARM_UP

        # @return [Symbol]
        def database = :postgresql

        def unit = "s"

        # @return [Boolean] whether the contestants run as servers, see {ServedRow}
        def served? = false

        def time_limit = 180

        def around(_quick)
          Servers.during(database) { |place, _server| yield({ place: }) }
        end

        def excludes(contestant)
          return "another database" unless contestant.database == database

          "one after the other: known by arithmetic" if contestant.blocking? && !blocking?
        end

        private

        # @return [Boolean] whether the row says something about queries that run one after the other
        def blocking? = true

        # @return [Float] seconds
        def elapsed
          began = now
          yield
          now - began
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        # A query that failed, or answered something else, spoils the sample.
        def check_all(errors)
          raise errors.first unless errors.empty?
        end

        def check_answer(answer, expected)
          raise "a query answered #{answer} instead of #{expected}" unless answer == expected
        end

        # Opens all connections: each has a query at the same time.
        def warm_up(contestant, connections)
          check_all(contestant.each((1..connections).to_a, workers: connections) do
            check_answer(contestant.query(Queries.sleep(WARM_UP, database)), Queries.slept(database))
          end)
        end
      end
    end
  end
end
