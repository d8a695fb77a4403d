# frozen_string_literal: true

module Bench
  module Rows
    # Two fibers hand an item to and fro through two of Ruby's own queues: every pop has to wait for the other fiber,
    # so this is what it costs to be woken through a queue.
    class Queue < Row
      def key = "thread-queue"

      def title = "hand-over through Thread::Queue, one way"

      def unit = "µs"

      def details = %i[cpu_us]

      def sizes(quick:) = { hand_overs: quick ? 20_000 : 200_000 }

      def excludes(contestant) = contestant.key == "blocking" ? "would wait for itself" : super

      def measure(contestant, size)
        play(contestant, 1_000)
        handed = 0
        seconds, cpu = timed { handed = play(contestant, size[:hand_overs]) }
        check(handed, size[:hand_overs], "hand-overs")
        { value: seconds * 1e6 / handed, cpu_us: cpu * 1e6 / handed }
      end

      private

      def queue(_contestant) = Thread::Queue.new

      def play(contestant, count)
        handed = 0
        contestant.run do
          there = queue(contestant)
          back = queue(contestant)
          contestant.spawn { (count / 2).times { back.push(there.pop) } }
          contestant.spawn { handed = hand_over(there, back, count / 2) }
        end
        handed
      end

      def hand_over(there, back, count)
        handed = 0
        1.upto(count) do |number|
          there.push(number)
          handed += 2 if back.pop == number
        end
        handed
      end
    end
  end
end
