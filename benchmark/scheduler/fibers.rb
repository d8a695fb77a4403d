# frozen_string_literal: true

module Bench
  module Rows
    # The price of a fiber: created, run and finished, none of them waits.
    class Fibers < Row
      def key = "fibers"

      def title = "#{Figure.grouped(100_000)} fibers created and finished"

      def unit = "s"

      def details = %i[cpu_s rss_mb]

      def sizes(quick:) = { fibers: quick ? 10_000 : 100_000, per: 100_000 }

      def excludes(contestant) = contestant.key == "blocking" ? "nothing to create" : super

      def measure(contestant, size)
        start(contestant, 1_000)
        finished = 0
        seconds, cpu = timed { finished = start(contestant, size[:fibers]) }
        check(finished, size[:fibers], "fibers finished")
        scale = size[:per].fdiv(size[:fibers])
        { value: seconds * scale, cpu_s: cpu * scale }
      end

      private

      def start(contestant, count)
        finished = 0
        contestant.run { count.times { contestant.spawn_brief { finished += 1 } } }
        finished
      end
    end
  end
end
