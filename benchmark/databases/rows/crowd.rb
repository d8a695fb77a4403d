# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Many more tasks than connections: the first that comes is served first, and none is left out.
      class Crowd < QueryRow
        CONNECTIONS = 5
        TASKS = 500
        DELAY = 0.05

        def key = "crowd"

        def title = "#{TASKS} tasks, #{CONNECTIONS} connections, queries of 50 ms: until the last is answered"

        def details = %i[p50_ms errors]

        def goals = [Goal.new(at_most: 1.1 * TASKS / CONNECTIONS * DELAY, unit: "s")]

        def sizes(quick:) = { tasks: quick ? 20 : TASKS }

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          waits = []
          errors = []
          seconds = nil
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            began = now
            errors = contestant.each((1..size[:tasks]).to_a, workers: size[:tasks]) { waits << ask(contestant, began) }
            seconds = now - began
          end
          { value: seconds, p50_ms: Statistics.median(waits) * 1000, errors: errors.size }
        end

        private

        def blocking? = false

        def ask(contestant, began)
          check_answer(contestant.query(Queries.sleep(DELAY, database)), Queries.slept(database))
          now - began
        end
      end
    end
  end
end
