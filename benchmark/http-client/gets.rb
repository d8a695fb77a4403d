# frozen_string_literal: true

module Bench
  module Rows
    # GETs of a short body over connections that are kept, from so many tasks.
    class ClientGets < Row
      def self.variants = [new(1), new(20)]

      def initialize(tasks)
        super()
        @tasks = tasks
      end

      def key = "gets-#{@tasks}"

      def title = "GETs over kept connections, #{@tasks} at once"

      def unit = "req/s"

      def better = :higher

      def core = 0

      def details = %i[cpu_us objects]

      def shown = %i[cpu_us objects]

      def goals
        return [] if @tasks == 1

        [Goal.new(at_least: 1.5, than: "net-http"), Goal.new(of: :cpu_us, at_most: 35, unit: "µs"),
         Goal.new(of: :objects, at_most: 30, unit: "")]
      end

      def sizes(quick:) = { requests: quick ? 2_000 : 20_000 }

      def around(_quick) = DelayServer.run { |port| yield({ port: }) }

      def measure(contestant, size)
        sample = nil
        contestant.run do
          contestant.open("http://127.0.0.1:#{size[:port]}", @tasks, http2?)
          warm_up(contestant)
          sample = measure_gets(contestant, size[:requests] / @tasks)
        end
        sample
      end

      private

      def http2? = false

      def path = "/0"

      # Every task has its connection then.
      def warm_up(contestant) = get_all(contestant, 1)

      def measure_gets(contestant, each)
        answered = objects = 0
        seconds, cpu = timed do
          before = GC.stat(:total_allocated_objects)
          answered = get_all(contestant, each)
          objects = GC.stat(:total_allocated_objects) - before
        end
        check(answered, each * @tasks, "requests were answered")
        { value: answered / seconds, cpu_us: cpu * 1e6 / answered, objects: objects.fdiv(answered) }
      end

      # @return [Integer] how many were answered
      def get_all(contestant, each)
        ::Heddle.map(0...@tasks) do |task|
          Array.new(each) { contestant.get(task, path) == DelayServer::BODY }.count(true)
        end.sum
      end
    end
  end
end
