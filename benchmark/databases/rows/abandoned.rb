# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Every connection has a query that no client waits for: how long until the pool serves again, and until the
      # server runs none of those queries.
      class Abandoned < QueryRow
        CONNECTIONS = 20
        LONG = 2 # seconds
        PATIENCE = 0.1
        PAUSE = 0.005

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

        def details = [:gone_ms]

        def shown = [:gone_ms]

        def goals = [Goal.new(at_most: 50, unit: "ms"), Goal.new(of: :gone_ms, at_most: 500)]

        def sizes(quick:) = { quick: }

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          served = gone = nil
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            given_up = now + PATIENCE
            abandon(contestant)
            contestant.each((1..CONNECTIONS).to_a, workers: CONNECTIONS) { |id| contestant.query(Queries.short(id)) }
                      .then { |errors| check_all(errors) }
            served = now - given_up
            sleep(PAUSE) while contestant.query(Queries.count_stuck(LONG, database)).positive?
            gone = now - given_up
          end
          { value: served * 1000, gone_ms: gone * 1000 }
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
