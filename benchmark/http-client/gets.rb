# frozen_string_literal: true

module Bench
  module Rows
    # GETs of a short body over connections that are kept, from so many tasks; and a thousand at once, to a server that
    # takes its time.
    class ClientGets < Row
      # Of the seeds: requests a second, by the server's delay in milliseconds.
      SLOW = { 10 => 1_997, 50 => 1_837, 100 => 1_656, 500 => 1_500 }.freeze

      def self.variants = [new(1, 0), new(20, 0), *SLOW.keys.map { |delay| new(1_000, delay) }]

      def initialize(tasks, delay)
        super()
        @tasks = tasks
        @delay = delay
      end

      def key = @delay.zero? ? "gets-#{@tasks}" : "slow-#{@delay}"

      def title
        return "GETs over kept connections, #{@tasks} at once" if @delay.zero?

        "1,000 GETs at once, the server answers after #{@delay} ms"
      end

      def unit = "req/s"

      def better = :higher

      def core = 0

      def details = %i[cpu_us objects]

      def shown = %i[cpu_us objects]

      def goals
        return [Goal.new(at_least: SLOW.fetch(@delay), unit: "req/s")] unless @delay.zero?
        return [] if @tasks == 1

        [Goal.new(at_least: 1.5, than: Goal::BEST), Goal.new(of: :cpu_us, at_most: 35, unit: "µs"),
         Goal.new(of: :objects, at_most: 30, unit: "")]
      end

      def sizes(quick:)
        { requests: if @delay.positive?
                      1_000
                    else
                      (quick ? 2_000 : 20_000)
                    end }
      end

      def around(_quick) = (@delay.zero? ? QuickServer : DelayServer).run { |port| yield({ port: }) }

      def measure(contestant, size)
        path = "/#{@delay / 1000.0}"
        each = size[:requests] / @tasks
        sample = nil
        contestant.run do
          contestant.open("http://127.0.0.1:#{size[:port]}", @tasks)
          get_all(contestant, "/0", 1) if @delay.zero? # every task has its connection then
          answered = objects = 0
          seconds, cpu = timed do
            before = GC.stat(:total_allocated_objects)
            answered = get_all(contestant, path, each)
            objects = GC.stat(:total_allocated_objects) - before
          end
          check(answered, each * @tasks, "requests were answered")
          sample = { value: answered / seconds, cpu_us: cpu * 1e6 / answered, objects: objects.fdiv(answered) }
        end
        sample
      end

      private

      # @return [Integer] how many were answered
      def get_all(contestant, path, each)
        ::Heddle.map(0...@tasks) do |task|
          Array.new(each) { contestant.get(task, path) == DelayServer::BODY }.count(true)
        end.sum
      end
    end
  end
end
