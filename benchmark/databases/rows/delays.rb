# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Queries that the database answers after a while.
      class Delays < QueryRow
        CONNECTIONS = 100
        QUERIES = 1_000

        def self.variants = [0, 10, 50, 100, 500].map { |delay| new(delay) }

        # @param delay [Integer] milliseconds
        def initialize(delay)
          super()
          @delay = delay
        end

        def key = "delay-#{@delay}"

        def title = "#{Figure.grouped(QUERIES)} queries that take #{@delay} ms, #{CONNECTIONS} connections"

        def unit = "queries/s"

        def better = :higher

        def details = [:cpu_us]

        def sizes(quick:) = { queries: quick ? 100 : QUERIES }

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          items = (1..size[:queries]).to_a
          seconds = cpu = nil
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            seconds, cpu = timed { check_all(contestant.each(items, workers: CONNECTIONS) { ask(contestant) }) }
          end
          { value: items.size / seconds, cpu_us: cpu * 1e6 / items.size }
        end

        private

        def blocking? = @delay <= 10

        def ask(contestant)
          check_answer(contestant.query(Queries.sleep(@delay / 1000.0, database)), Queries.slept(database))
        end
      end
    end
  end
end
