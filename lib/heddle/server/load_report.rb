# frozen_string_literal: true

module Heddle
  class Server
    # The load of the server that this process belongs to, as {Heddle.stats} returns it.
    module LoadReport
      SUMS = %i[running queued connections requests].freeze
      private_constant :SUMS

      class << self
        # @return [Server, nil] the server that runs in this process now
        attr_accessor :server

        # @return [Hash{Symbol => Object}]
        def to_h
          per_worker = server&.loads || []
          serving = per_worker.reject { |one| one[:reserve] }
          capacities = serving.map { |one| one[:capacity] }
          { mode: server&.configuration&.mode, workers: serving.size,
            **SUMS.to_h { |name| [name, per_worker.sum { |one| one[name] }] },
            capacity: (capacities.sum unless capacities.include?(nil)), per_worker: }
        end

        # @param statistics [Hash] {Server#statistics}
        # @return [Hash{Symbol => Object}] the load of a server with a single process
        def of_process(statistics, requests)
          running, queued, limit = statistics.values_at(:running, :waiting, :limit)
          entry(worker: 0, pid: Process.pid, running:, queued:, limit:, requests:, reserve: false,
                **statistics.slice(:connections, :accepting, :lag))
        end

        # @param slot [Hash] one worker's slot of the scoreboard (shared memory with the load of each worker)
        # @return [Hash{Symbol => Object}] the load of that worker
        def of_worker(slot)
          queued = slot[:waiting]
          entry(worker: slot[:index], queued:, running: [slot[:in_flight] - queued, 0].max,
                **slot.slice(:pid, :limit, :requests, :reserve, :connections, :accepting, :lag))
        end

        private

        def entry(running:, limit:, **load) = { running:, capacity: limit && [limit - running, 0].max, **load }
      end
    end
  end
end
