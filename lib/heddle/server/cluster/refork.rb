# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # When a worker has warmed up, it becomes the mold: `refork_after` switches that on. Workers that are forked from
      # it share what the first requests have filled (caches, compiled templates, Ruby's inline caches), instead of each
      # making its own.
      module Refork
        # @param fleet [Fleet]
        # @param scoreboard [Net::Scoreboard]
        # @return [WorkerHandle, nil] the worker that has served enough requests, if its mold has not warmed up
        def self.candidate(fleet, scoreboard)
          mold = fleet.mold
          return if mold.nil? || mold.warm || !mold.ready? || !fleet.complete?

          wanted = mold.configuration.refork_after
          return if wanted.zero?

          requests = ->(worker) { scoreboard.read(worker.slot)&.fetch(:requests) || 0 }
          busiest = fleet.serving.reject(&:reserve?).max_by(&requests)
          busiest if requests.call(busiest) >= wanted && busiest.mold.equal?(mold)
        end
      end
    end
  end
end
