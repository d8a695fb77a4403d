# frozen_string_literal: true

require "timeout"

module Bench
  module Rows
    # How late `Timeout.timeout` is, a thousand of them around sleeps that would not end.
    class Timeouts < Row
      LIMIT = 0.5

      def key = "timeouts"

      def title = "1,000 × Timeout.timeout(0.5) { sleep 10 }: how late the last one is"

      def unit = "ms"

      def details = %i[cpu_s]

      def sizes(quick:) = { timeouts: quick ? 100 : 1_000 }

      def excludes(contestant) = contestant.key == "blocking" ? "8 minutes by arithmetic" : super

      def measure(contestant, size)
        late = []
        _, cpu = timed do
          contestant.run { size[:timeouts].times { contestant.spawn { late << time_out } } }
        end
        check(late.compact.size, size[:timeouts], "timed out")
        { value: late.max * 1_000, cpu_s: cpu }
      end

      private

      # @return [Float, nil] by how many seconds it was late
      def time_out
        raised = false
        seconds, = timed do
          Timeout.timeout(LIMIT) { sleep(10) }
        rescue Timeout::Error
          raised = true
        end
        raised ? seconds - LIMIT : nil
      end
    end
  end
end
