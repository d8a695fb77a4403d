# frozen_string_literal: true

module Bench
  module Rows
    # A fiber joins three threads that sleep for a second, beside a fiber that ticks every 5 ms: how late is a tick at
    # worst?
    class ThreadJoin < Row
      TICK = 0.005

      def key = "thread-join"

      def title = "3 threads that sleep 1 s joined in a fiber: latest tick of a fiber beside it"

      def unit = "ms"

      def details = %i[joined_s cpu_s]

      def sizes(quick:) = { threads: 3, seconds: quick ? 0.3 : 1.0 }

      def excludes(contestant) = contestant.key == "blocking" ? "can't tick beside it" : super

      def measure(contestant, size)
        late = []
        joined = cpu = nil
        contestant.run do
          contestant.spawn { late = tick { joined } }
          contestant.spawn { joined, cpu = timed { join(size) } }
        end
        check(late.size > 10, true, "ticks")
        { value: late.max * 1_000, joined_s: joined, cpu_s: cpu }
      end

      private

      def join(size) = Array.new(size[:threads]) { Thread.new { sleep(size[:seconds]) } }.each(&:value)

      # @return [Array<Float>] by how many seconds each tick was late
      def tick
        late = []
        until yield
          seconds, = timed { sleep(TICK) }
          late << (seconds - TICK)
        end
        late
      end
    end
  end
end
