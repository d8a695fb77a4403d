# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Decides how many reserve workers run. A reserve worker is started when a worker has been stuck for 100 ms. It
      # begins to serve when all workers are stuck, which it reads from the scoreboard (shared memory with the load of
      # each worker). It ends 30 s after the last stall of a worker. If workers take long to start, one reserve worker
      # runs all the time.
      class ReserveDemand
        # A reserve worker ends this many seconds after the last stall. So it is not forked again for each stall.
        LIFETIME = 30
        # One reserve worker runs all the time if the newest worker needed more than SLOW_BOOT seconds to begin to
        # serve, or if a reserve worker was not forked within SLOW_FORK seconds.
        SLOW_BOOT = 0.15
        SLOW_FORK = 0.1
        private_constant :LIFETIME, :SLOW_BOOT, :SLOW_FORK

        # @param fleet [Fleet]
        # @param scoreboard [Net::Scoreboard]
        # @param log [#event]
        # @param clock [#call] returns the time in seconds
        # @param memory [#short?] whether the memory budget is exceeded
        def initialize(fleet, scoreboard, log, clock, memory:)
          @fleet = fleet
          @scoreboard = scoreboard
          @log = log
          @clock = clock
          @memory = memory
          @stalled_at = @boot_seen_at = -Float::INFINITY
          @standby = @refused = false
        end

        # Records that a worker has been stuck for 100 ms.
        # @return [void]
        def record_stall = @stalled_at = @clock.call

        # Starts or ends reserve workers. Must be called at each event of the master, and about every second.
        # @return [void]
        def check
          mold = @fleet.mold
          return unless mold&.ready?

          choose_standby
          wanted = [@standby ? 1 : 0, count_demanded].max.clamp(0, mold.configuration.reserve_count)
          wanted = @fleet.reserves if wanted > @fleet.reserves && refused?
          @fleet.resize(@fleet.size, wanted) if wanted != @fleet.reserves
        end

        private

        # After a stall, one reserve worker should run, and another one for each reserve worker that is stuck itself.
        def count_demanded
          now = @clock.call
          return 0 if now - @stalled_at >= LIFETIME

          stuck = @fleet.serving.select { |worker| stuck?(worker) }
          @stalled_at = now if stuck.any?
          1 + stuck.count(&:reserve?)
        end

        def stuck?(worker) = (@scoreboard.read(worker.slot)&.fetch(:stuck_for) || 0) >= Net::Scoreboard::RESERVE_AFTER

        def choose_standby
          worker = @fleet.workers.select(&:ready_at).max_by(&:ready_at)
          if (late = @fleet.workers.find { |one| fork_time(one) > SLOW_FORK })
            keep_ready("worker #{late.index} was not forked within #{SLOW_FORK} s")
          elsif worker && worker.ready_at > @boot_seen_at
            @boot_seen_at = worker.ready_at
            seconds = boot_time(worker)
            @standby = false if seconds <= SLOW_BOOT
            keep_ready("the last worker took #{seconds.round(2)} s to start") unless seconds <= SLOW_BOOT
          end
        end

        # Other workers are started together and forked one after another, so they also wait for each other. Only a
        # reserve worker's time shows how long a fork takes.
        def fork_time(worker) = worker.reserve? ? (worker.forked_at || @clock.call) - worker.started_at : 0

        def boot_time(worker) = worker.ready_at - ((worker.forked_at unless worker.reserve?) || worker.started_at)

        def keep_ready(reason)
          return if @standby

          @standby = true
          return unless @fleet.mold.configuration.reserve_count.positive?

          @log.event(:reserve_kept, reason:)
        end

        # If the memory budget is exceeded, one more process could make the system kill a worker.
        def refused?
          short = @memory.short?
          @log.event(:reserve_refused) if short && !@refused
          @refused = short
        end
      end
    end
  end
end
