# frozen_string_literal: true

module Bench
  module Rows
    # A thread feeds a fiber through Ruby's queue: the wake-up comes from outside the loop.
    class ThreadQueue < Row
      def key = "thread-to-fiber"

      def title = "100,000 items from a thread to a fiber through Thread::Queue"

      def unit = "items/s"

      def better = :higher

      def details = %i[cpu_us]

      def sizes(quick:) = { items: quick ? 10_000 : 100_000 }

      def excludes(contestant) = contestant.key == "blocking" ? "would wait for itself" : super

      def measure(contestant, size)
        take(contestant, 1_000)
        taken = 0
        seconds, cpu = timed { taken = take(contestant, size[:items]) }
        check(taken, size[:items], "items in order")
        { value: taken / seconds, cpu_us: cpu * 1e6 / taken }
      end

      private

      def take(contestant, count)
        taken = 0
        contestant.run do
          queue = Thread::Queue.new
          feeder = Thread.new { 1.upto(count) { |number| queue << number } }
          contestant.spawn do
            1.upto(count) { |number| taken += 1 if queue.pop == number }
            feeder.join
          end
        end
        taken
      end
    end
  end
end
