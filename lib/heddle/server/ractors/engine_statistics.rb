# frozen_string_literal: true

module Heddle
  class Server
    module Ractors
      # The last reported counters of a Ractor's engine: HTTP::Engine itself is the Ractor's alone.
      EngineStatistics = Data.define(:requests, :rejected, :answers, :rejections, :durations, :latencies, :latency_sum,
                                     :spent, :endpoints, :slowest, :spooled, :body_disk_used, :websockets, :gone) do
        # @param engine [HTTP::Engine]
        # @param gone [Integer] clients that left
        # @return [EngineStatistics]
        def self.of(engine, gone) = new(**(members - [:gone]).to_h { |name| [name, engine.public_send(name)] }, gone:)

        # @param other [EngineStatistics] of the Ractor that has taken the place of this one
        # @return [EngineStatistics] of both
        def +(other)
          numbers = %i[requests rejected latency_sum spooled gone].to_h { |name| [name, [self, other].sum(&name)] }
          lists = %i[answers latencies].to_h do |name|
            [name, [self, other].map(&name).transpose.map(&:sum)]
          end
          sockets = websockets.merge(other.websockets) { |name, one, more| name == :open ? more : one + more }
          lists[:rejections] = rejections.merge(other.rejections) { |_, one, more| one + more }
          lists[:durations] = durations.merge(other.durations) { |_, one, more| [one, more].transpose.map(&:sum) }
          spent = Account.sum([self.spent, other.spent])
          endpoints = Account.sum_endpoints([self.endpoints, other.endpoints])
          with(**numbers, **lists, spent:, endpoints:, websockets: sockets, slowest: other.slowest,
                                   body_disk_used: other.body_disk_used)
        end
      end
    end
  end
end
