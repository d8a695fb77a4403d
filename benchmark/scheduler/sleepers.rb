# frozen_string_literal: true

module Bench
  module Rows
    # A hundred thousand fibers that sleep for a second, all of them at once. Linux lets a process have 65,530 memory
    # mappings; a fiber of Ruby's has two, which stops Ruby alone near 31,700 of them. The second line is the same work
    # with that limit raised, for those who need it raised.
    class Sleepers < Row
      def self.variants = [new(raised: false), new(raised: true)]

      def initialize(raised:)
        super()
        @raised = raised
      end

      def key = @raised ? "sleepers-raised" : "sleepers"

      def title
        limit = @raised ? "vm.max_map_count raised to #{Figure.grouped(MapCount::RAISED)}" : "system as it is"
        "100,000 sleepers of 1 s, #{limit}"
      end

      def unit = "s"

      def time_limit = 60

      def details = %i[created_s cpu_s rss_mb]

      # Quick means fewer rounds here: with fewer sleepers there is no row.
      def sizes(quick:) = { sleepers: 100_000, seconds: 1, quick: }

      def excludes(contestant)
        return "would take a day" if contestant.key == "blocking"

        "needs --raise-map-count, and root" if @raised && !MapCount.may_raise?
      end

      def around(_quick, &block)
        return yield({}) unless @raised

        MapCount.raised { yield({}) }
      end

      def measure(contestant, size)
        @alive = @peak = @finished = 0
        @shortest = size[:seconds]
        contestant.run { 100.times { contestant.spawn { sleep(0.01) } } }
        created = nil
        seconds, cpu = timed { created = sleep_all(contestant, size) }
        check(@finished, size[:sleepers], "sleepers woke up")
        unless @peak == size[:sleepers]
          raise "only #{Figure.grouped(@peak)} of #{Figure.grouped(size[:sleepers])} were alive at once " \
                "(all had slept after #{Figure.format(seconds)} s)"
        end
        check_length(size, seconds)
        { value: seconds, cpu_s: cpu, created_s: created, note: "vm.max_map_count #{MapCount.current || "unknown"}" }
      end

      private

      # Ruby's sleep never comes back early; a thousandth is what coarse clocks may take.
      def check_length(size, seconds)
        return if @shortest >= size[:seconds] - 0.001

        raise "a sleeper woke up after #{Figure.format(@shortest)} s " \
              "(all had slept after #{Figure.format(seconds)} s)"
      end

      # @return [Float] seconds until the last one was started
      def sleep_all(contestant, size)
        created = nil
        contestant.run do
          created, = timed do
            size[:sleepers].times { contestant.spawn { sleep_once(size[:seconds]) } }
          end
        rescue FiberError, ThreadError, NoMemoryError => e
          raise e.class, "after #{Figure.grouped(@alive)}: #{e.message}"
        end
        created
      end

      def sleep_once(seconds)
        @alive += 1
        @peak = @alive if @alive > @peak
        started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        sleep(seconds)
        slept = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
        @shortest = slept if slept < @shortest
        @alive -= 1
        @finished += 1
      end
    end
  end
end
