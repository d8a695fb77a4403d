# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # The last reported counters of a Ractor's engine. No other Ractor can use the HTTP::Engine itself.
      EngineStatistics = Data.define(:requests, :rejected, :answers, :rejections, :durations, :latencies, :latency_sum,
                                     :spent, :endpoints, :slowest, :spooled, :body_disk_used, :websockets, :gone) do
        # @param engine [HTTP::Engine]
        # @param gone [Integer] clients that left
        # @return [EngineStatistics]
        def self.of(engine, gone) = new(**(members - [:gone]).to_h { |name| [name, engine.public_send(name)] }, gone:)

        # @param other [EngineStatistics] of the Ractor that has taken the place of this one
        # @return [EngineStatistics] the sum of both
        def +(other)
          sums = Statistics.add(to_h.except(:slowest), other.to_h.except(:slowest))
          sums[:websockets][:open] = other.websockets[:open]
          with(**sums, slowest: other.slowest, body_disk_used: other.body_disk_used)
        end
      end
    end
  end
end
