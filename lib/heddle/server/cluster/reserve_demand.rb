# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Decides how many reserve workers to run. One is started when the first worker has been stuck for 100 ms, and
      # serves when all are stuck; the scoreboard decides that. It ends when no worker has been stuck for a while. Where
      # workers take long to start, a reserve is kept ready instead.
      class ReserveDemand
        # Seconds after the last stall at which a reserve ends, so that reserves are not forked more often than this.
        LIFETIME = 30
        # If a worker takes more seconds than this to serve, or to be forked, a reserve is kept ready.
        SLOW_BOOT = 0.15
        SLOW_FORK = 0.1
        private_constant :LIFETIME, :SLOW_BOOT, :SLOW_FORK

        # @param fleet [Fleet]
        # @param scoreboard [Net::Scoreboard]
        # @param log [#event]
        # @param clock [#call] seconds
        # @param memory [#short?]
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

        # Must be called at each event, and about every second.
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

        # If a reserve is stuck, too, another one is needed.
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

        # Only the time of a reserve's fork counts, because several workers are forked one after another.
        def fork_time(worker) = worker.reserve? ? (worker.forked_at || @clock.call) - worker.started_at : 0

        def boot_time(worker) = worker.ready_at - ((worker.forked_at unless worker.reserve?) || worker.started_at)

        def keep_ready(reason)
          return if @standby

          @standby = true
          return unless @fleet.mold.configuration.reserve_count.positive?

          @log.event(:reserve_kept, reason:)
        end

        # If memory is short, another process might make the system kill a serving one.
        def refused?
          short = @memory.short?
          @log.event(:reserve_refused) if short && !@refused
          @refused = short
        end
      end
    end
  end
end
