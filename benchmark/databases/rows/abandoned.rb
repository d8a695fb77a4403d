# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Every connection has a query that nobody waits for any more: how long until the pool serves again.
      class Abandoned < QueryRow
        CONNECTIONS = 20
        LONG = 2 # seconds
        PATIENCE = 0.1

        def self.variants = %i[postgresql mariadb].map { |database| new(database) }

        attr_reader :database

        def initialize(database)
          super()
          @database = database
        end

        def key = "#{"mariadb-" if database == :mariadb}abandoned"

        def title
          "#{"MariaDB, " if database == :mariadb}#{CONNECTIONS} queries of #{LONG} s given up after 0.1 s: the next " \
            "#{CONNECTIONS} answered after"
        end

        def unit = "ms"

        def goals = [Goal.new(at_most: 50, unit: "ms")]

        def sizes(quick:) = { quick: }

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          seconds = nil
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            began = now
            abandon(contestant)
            contestant.each((1..CONNECTIONS).to_a, workers: CONNECTIONS) { |id| contestant.query(Queries.short(id)) }
                      .then { |errors| check_all(errors) }
            seconds = now - began - PATIENCE
          end
          { value: seconds * 1000 }
        end

        private

        def blocking? = false

        def abandon(contestant)
          gone = contestant.each((1..CONNECTIONS).to_a, workers: CONNECTIONS) do
            contestant.time_out(PATIENCE) { contestant.query(Queries.stuck(LONG, database)) }
          end
          check(gone.size, CONNECTIONS, "queries given up")
        end
      end
    end
  end
end
