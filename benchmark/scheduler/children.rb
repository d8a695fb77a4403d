# frozen_string_literal: true

module Bench
  module Rows
    # Fifteen child processes that sleep for a second, started and waited for in fifteen fibers in three ways.
    class Children < Row
      def key = "children"

      def title = "5 × system, 5 × backticks, 5 × Process.wait of `sleep 1`, all at once"

      def unit = "s"

      def details = %i[cpu_s]

      def sizes(quick:) = { each: 5, quick: }

      def excludes(contestant) = contestant.key == "blocking" ? "15 s by arithmetic" : super

      def measure(contestant, size)
        waited = 0
        seconds, cpu = timed do
          contestant.run do
            size[:each].times do
              contestant.spawn { waited += 1 if system("sleep 1") }
              contestant.spawn { waited += 1 if `sleep 1; echo done` == "done\n" }
              contestant.spawn { waited += 1 if Process.wait2(Process.spawn("sleep 1")).last.success? }
            end
          end
        end
        check(waited, size[:each] * 3, "children were waited for")
        { value: seconds, cpu_s: cpu }
      end
    end
  end
end
