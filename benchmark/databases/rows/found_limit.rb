# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # A pool's limit that finds itself, beside the best of some that were chosen.
      class FoundLimit < QueryRow
        CHOSEN = [2, 4, 8, 16, 32].freeze
        TASKS = 64
        WAIT = 0.02

        def self.variants = %i[computing waiting].map { |work| new(work) }

        # @param work [Symbol] what the database does
        def initialize(work)
          super()
          @work = work
        end

        def key = "limit-#{@work}"

        def title
          "#{@work} queries of #{TASKS} tasks: `limit: :auto` beside the best of #{CHOSEN.join(", ")} connections"
        end

        def unit = "%"

        def better = :higher

        def goals = [Goal.new(at_least: 90, unit: "%")]

        def compared? = false

        def excludes(contestant) = super || ("its pool's limit does not find itself" unless contestant.finds_limit?)

        def sizes(quick:) = quick ? { seconds: 0.2, settle: 0.2 } : { seconds: 2, settle: 2 }

        def measure(contestant, size)
          chosen = CHOSEN.map { |limit| rate(contestant, limit, size) }
          { value: 100 * rate(contestant, :auto, size) / chosen.max }
        end

        private

        def blocking? = false

        # Queries a second, after a while in which a limit finds itself.
        def rate(contestant, limit, size)
          contestant.open(size[:place], connections: limit)
          answers = 0
          contestant.run do
            from = now + size[:settle]
            to = from + size[:seconds]
            check_all(contestant.each((1..TASKS).to_a, workers: TASKS) do
              while (time = now) < to
                ask(contestant)
                answers += 1 if time >= from
              end
            end)
          end
          answers / size[:seconds]
        end

        def ask(contestant)
          return check_answer(contestant.query(Queries::LONG), Queries::NONE) if @work == :computing

          check_answer(contestant.query(Queries.sleep(WAIT, database)), Queries.slept(database))
        end
      end
    end
  end
end
