# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # The counters in a Ractor's most recent report. The main Ractor needs the report, because only the Ractor that
      # owns an HTTP::Engine can read the engine's counters.
      EngineStatistics = Data.define(:requests, :rejected, :answers, :rejections, :durations, :latencies, :latency_sum,
                                     :spent, :endpoints, :slowest, :spooled, :body_disk_used, :websockets, :gone) do
        # @param engine [HTTP::Engine]
        # @param gone [Integer] {Log#gone}
        # @return [EngineStatistics]
        def self.of(engine, gone) = new(**(members - [:gone]).to_h { |name| [name, engine.public_send(name)] }, gone:)

        # @param other [EngineStatistics] the counters of the newer Ractor, which has replaced the Ractor of this object
        # @return [EngineStatistics] the sums; values that are not counters are those of the newer Ractor
        def +(other)
          sums = Statistics.add(to_h.except(:slowest), other.to_h.except(:slowest))
          sums[:websockets][:open] = other.websockets[:open]
          with(**sums, slowest: other.slowest, body_disk_used: other.body_disk_used)
        end
      end
    end
  end
end
