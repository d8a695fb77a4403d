# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # The database stops at once and starts again while queries run.
      class Restart < QueryRow
        CONNECTIONS = 12
        # Seconds of queries before the stop.
        AROUND = 0.5
        # Seconds for which the tasks continue after the first result that follows an error.
        LATE = 3
        PAUSE = 0.01
        LONGEST = 30

        def key = "restart"

        def title = "PostgreSQL stopped and started under load: from when it accepts until it answers the tasks"

        def unit = "ms"

        def details = [:errors]

        def goals = [Goal.new(at_most: 1000, unit: "ms")]

        def sizes(quick:) = { quick: }

        def around(_quick)
          Servers.during(database) do |place, server|
            @server = server
            yield({ place: })
          end
        end

        # In the parent: what is said in the child becomes the time of the first answer.
        def drive(child, _size)
          child.message
          accepts = restart
          sample = child.result
          first = sample[:answers].find { |time| time > accepts }
          raise Child::Failed, "no answer after the restart" unless first

          { value: (first - accepts) * 1000, errors: sample[:errors], rss_mb: sample[:rss_mb] }
        end

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          observed = Observed.new([], 0, now + LONGEST)
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            yield({ ready: true })
            check_all(contestant.each((1..CONNECTIONS).to_a, workers: CONNECTIONS) do |id|
              ask_on(contestant, id, observed)
            end)
          end
          { answers: observed.answers, errors: observed.errors }
        end

        # The times of answers after the first error, the number of errors, and when the tasks end.
        Observed = Struct.new(:answers, :errors, :ends)
        private_constant :Observed

        private

        def blocking? = false

        # @return [Float] when it accepts again
        def restart
          sleep(AROUND)
          @server.restart
          now
        end

        def ask_on(contestant, id, observed)
          while now < observed.ends
            answer = ask(contestant, id, observed)
            check_answer(answer, id) if answer
            sleep(PAUSE)
          end
        end

        # @return [Integer, nil] nil: the database is not there
        def ask(contestant, id, observed)
          answer = contestant.query(Queries.short(id))
          note_answer(observed) if observed.errors.positive?
          answer
        rescue StandardError
          observed.errors += 1
          nil
        end

        # It continues for a while after the first results: those of queries that were on their way may come earlier.
        def note_answer(observed)
          observed.answers << now
          observed.ends = [observed.ends, observed.answers.first + LATE].min
        end
      end
    end
  end
end
