# frozen_string_literal: true

module Bench
  module HTTP
    module Rows
      # What the rows have in common: a server that runs is measured from outside.
      class HTTPRow < Row
        attr_reader :key, :title, :goals, :connections

        def initialize(key:, title:, connections:, goals: [])
          super()
          @key = key
          @title = title
          @connections = connections
          @goals = goals
        end

        def excludes(contestant)
          need = connections + 200
          limit = Process.getrlimit(Process::RLIMIT_NOFILE).first
          return "ulimit -n is #{limit}, #{need} are needed" if limit < need

          contestant.excludes(key)
        end

        private

        # @return [Hash] CPU time for each of so many answers, between two readings, and memory now
        def usage(server, before, after, answers)
          tree = server.tree
          { cpu_us: before && after && ((after - before) * 1e6 / answers), pss_mb: tree.pss_megabytes,
            resident_mb: tree.rss_megabytes }
        end
      end
    end
  end
end
