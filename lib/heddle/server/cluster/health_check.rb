# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Checks the workers once a second: for a heartbeat, for too much memory, and for an overdue end.
      class HealthCheck
        # Seconds between two questions whether a worker still lives.
        PING = 5
        # Seconds between two looks at the memory of all workers; each costs the kernel a walk through its pages.
        MEMORY = 10
        # Seconds that a worker has at least until it is ready.
        BOOT = 60
        # Seconds that a stuck worker may take to say what it does.
        LAST_WORDS = 0.5
        private_constant :PING, :MEMORY, :BOOT, :LAST_WORDS

        # @param fleet [Fleet]
        # @param log [#notice]
        # @param clock [#call] seconds
        # @param memory [MemoryGuard]
        def initialize(fleet, log, clock, memory: MemoryGuard.new)
          @fleet = fleet
          @log = log
          @clock = clock
          @memory = memory
          @pinged = @measured = -Float::INFINITY
        end

        # @return [void]
        def check_workers
          now = @clock.call
          @fleet.workers.each { |worker| check_worker(worker, now) }
          ping(now)
          measure(now)
        end

        private

        def check_worker(worker, now)
          timeout = worker.mold.configuration.worker_timeout
          timeout = [timeout, BOOT].max unless timeout == 0 || worker.serving?
          if worker.deadline && now > worker.deadline then end_late(worker)
          elsif !worker.ending? && !worker.reason && timeout > 0 && now - worker.heard > timeout
            end_stuck(worker, now - worker.heard)
          end
        end

        def end_late(worker)
          worker.deadline = nil
          @log.notice("#{worker.name} has not ended in time: it is killed") unless worker.reason
          worker.kill("KILL")
        end

        def end_stuck(worker, silent)
          doing = worker.serving? ? "has sent no heartbeat" : "has not become ready"
          worker.reason = "#{doing} for #{silent.round} s and was killed"
          @log.notice("#{worker.name} #{doing} for #{silent.round} s: it is killed")
          worker.deadline = @clock.call + LAST_WORDS
          worker.ask("served") do |served|
            @log.notice("#{worker.name} was serving #{served}") if served
            worker.kill("KILL")
          end
        end

        def ping(now)
          shortest = @fleet.serving.map { |worker| worker.mold.configuration.worker_timeout }.select(&:positive?).min
          return if shortest.nil? || now - @pinged < [PING, shortest / 4.0].min

          @pinged = now
          @fleet.serving.each { |worker| worker.channel.send_message("ping") }
        end

        # One at a time, so that they don't all come back cold.
        def measure(now)
          return if now - @measured < MEMORY

          @measured = now
          workers = @fleet.workers
          @memory.keep(workers)
          return if workers.any? { |worker| !worker.serving? }

          workers.each do |worker|
            limit = worker.mold.configuration.worker_memory_limit
            bytes = @memory.excess(worker, limit) or next
            break unless @fleet.start(worker.index, replaces: worker) # later, when one can be started

            @log.notice("#{worker.name} uses #{mebibytes(bytes)} MiB of memory, worker_memory_limit is " \
                        "#{mebibytes(limit)} MiB: it is replaced")
            break
          end
        end

        def mebibytes(bytes) = (bytes / 1_048_576.0).round
      end
    end
  end
end
