# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Replaces workers that have served `worker_max_requests` requests, or have run for `worker_max_age` seconds. Each
      # worker's limits are lowered by a random part, so that workers don't reach them together. Replaces one worker at
      # a time, and an old worker ends only when the new one serves.
      class WorkerLifetime
        # Minimum number of seconds between the starts of two new workers, if the first has ended before it could serve.
        RETRY_INTERVAL = 10
        private_constant :RETRY_INTERVAL

        # @param fleet [Fleet]
        # @param scoreboard [Net::Scoreboard]
        # @param log [#event]
        # @param clock [#call] returns the time in seconds
        def initialize(fleet, scoreboard, log, clock)
          @fleet = fleet
          @scoreboard = scoreboard
          @log = log
          @clock = clock
          @successor = nil
        end

        # Starts to replace a worker if one has reached a limit. Must be called about every second.
        # @return [void]
        def check
          workers = @fleet.workers
          return unless workers.all?(&:serving?) && may_start?

          # Replaces the oldest worker first. Otherwise a worker that soon reaches its limit again could keep the others
          # from being replaced.
          worker = workers.select { |one| reached_limits(one).any? }.min_by(&:ready_at)
          replace(worker, reached_limits(worker)) if worker
        end

        private

        def may_start?
          failed = @successor && @successor.ready_at.nil?
          !failed || @clock.call >= @successor.started_at + RETRY_INTERVAL
        end

        # @return [Hash{Symbol => Numeric}] the limits that the worker has reached, as configured, without the random
        #   part
        def reached_limits(worker)
          configuration = worker.mold.configuration
          limits = { max_requests: configuration.worker_max_requests, max_age: configuration.worker_max_age }
          used = { max_requests: requests_of(worker), max_age: age_of(worker) }
          limits.select { |name, limit| limit.positive? && used[name] >= limit * worker.limit_share }
        end

        def requests_of(worker) = @scoreboard.read(worker.slot)&.fetch(:requests) || 0

        def age_of(worker) = @clock.call - worker.ready_at

        def replace(worker, limits)
          @successor = @fleet.start(worker.index, replaces: worker) or return # the next check tries again
          used = { requests: requests_of(worker), age: age_of(worker) }
          @log.event(:worker_lifetime_ended, **worker.fields, **used, **limits)
        end
      end
    end
  end
end
