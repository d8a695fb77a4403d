# frozen_string_literal: true

module Bench
  module Databases
    module Rows
      # Tasks that ask as a page does: one long query and many short ones, one after the other.
      class Pages < QueryRow
        CONNECTIONS = 12
        SHORT = 20
        AT_ONCE = 16

        def key = "pages"

        def title = "pages of one long and #{SHORT} short queries, #{AT_ONCE} at a time"

        def unit = "pages/s"

        def better = :higher

        def details = [:cpu_us]

        def goals = [Goal.new(at_least: 1.6, than: "blocking"), Goal.new(at_least: 1.1, than: "async-ar")]

        def sizes(quick:) = { pages: quick ? 4 : 96 }

        def measure(contestant, size)
          contestant.open(size[:place], connections: CONNECTIONS)
          seconds = cpu = nil
          contestant.run do
            warm_up(contestant, CONNECTIONS)
            seconds, cpu = timed { run_pages(contestant, size[:pages]) }
          end
          { value: size[:pages] / seconds, cpu_us: cpu * 1e6 / size[:pages] }
        end

        private

        def run_pages(contestant, pages)
          left = pages
          check_all(contestant.each(Array.new(AT_ONCE) { |i| i }, workers: AT_ONCE) do
            make_page(contestant) while (left -= 1) >= 0
          end)
        end

        def make_page(contestant)
          check_answer(contestant.query(Queries::LONG), Queries::NONE)
          1.upto(SHORT) { |id| check_answer(contestant.query(Queries.short(id)), id) }
        end
      end
    end
  end
end
