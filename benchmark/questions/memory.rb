# frozen_string_literal: true

module Bench
  module Questions
    # What does a waiting request cost?
    class Memory < Experiment
      CASES = 'when "/wait" then sleep(1)'
      PAUSE = 0.7 # seconds until all wait
      private_constant :CASES, :PAUSE

      # @return [Array<String>]
      def find
        count = @quick ? 100 : 1_000
        { "a fiber" => [], "a thread" => ["--mode", "thread", "--threads", count.to_s] }.map do |kind, flags|
          "#{count} requests wait, each in #{kind}: #{measure(count, flags)} kB each"
        end
      end

      private

      def measure(count, flags)
        serve(CASES, flags:) do |server|
          get(server, "/wait")
          before = server.tree.pss_megabytes
          asking = Thread.new { get_all(server, ["/wait"] * count) }
          sleep(PAUSE)
          during = server.tree.pss_megabytes
          asking.join
          ((during - before) * 1_024 / count).round(1)
        end
      end
    end
  end
end
