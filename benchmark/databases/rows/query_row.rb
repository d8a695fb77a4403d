# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # A row with a database of its own.
      class QueryRow < Row
        WARM_UP = 0.2 # seconds
        LONGEST_WARM_UP = 5
        private_constant :WARM_UP, :LONGEST_WARM_UP

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

        # Opens all connections: each has a query at the same time, a longer one where some were opened too late for it.
        # A pool that opens one after the other would otherwise be measured with fewer than the others.
        def warm_up(contestant, connections, seconds = WARM_UP)
          check_all(contestant.each((1..connections).to_a, workers: connections) do
            check_answer(contestant.query(Queries.sleep(seconds, database)), Queries.slept(database))
          end)
          return if contestant.blocking?

          open = contestant.query(Queries.count_connections(database)) - 1
          return if open >= connections
          raise "#{open} connections are open, not #{connections}" if seconds > LONGEST_WARM_UP

          warm_up(contestant, connections, seconds * 2)
        end
      end
    end
  end
end
