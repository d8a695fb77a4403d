# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Kills workers that have not responded for too long, whose crash report hangs, or that take too long to stop.
      # Kills a mold that takes too long to fork a worker. The master calls {#check} once a second.
      class OverdueWorkers
        # Seconds between two pings of a worker.
        PING_INTERVAL = 5
        # A worker has at least this many seconds to become ready, even if `worker_timeout` is shorter.
        BOOT_TIMEOUT = 60
        # Seconds within which a stuck worker may report its running requests. Then it is killed.
        REPORT_TIMEOUT = 0.5
        # After this many seconds without a message, a crashed worker is killed. Ruby's crash report allocates memory,
        # so it can hang forever if the crash was in malloc.
        CRASH_TIMEOUT = 10
        private_constant :PING_INTERVAL, :BOOT_TIMEOUT, :REPORT_TIMEOUT, :CRASH_TIMEOUT

        # @param fleet [Fleet]
        # @param log [#event]
        # @param clock [#call] returns the time in seconds
        def initialize(fleet, log, clock)
          @fleet = fleet
          @log = log
          @clock = clock
          @pinged_at = -Float::INFINITY
        end

        # Kills what is overdue, and sends pings to the serving workers.
        # @return [void]
        def check
          now = @clock.call
          @fleet.workers.each { |worker| check_worker(worker, now) }
          ping_workers(now)
        end

        # Kills a stuck worker that has reported its running requests.
        # @param worker [WorkerHandle]
        # @param running [String, nil] see {RunningRequests.describe}
        # @return [void]
        def handle_report(worker, running)
          return unless worker.reason

          @log.event(:worker_requests, **worker.fields, running:) if running
          worker.kill
        end

        private

        def check_worker(worker, now)
          timeout = worker.mold.configuration.worker_timeout
          timeout = [timeout, BOOT_TIMEOUT].max unless timeout == 0 || worker.serving?
          silent = now - worker.last_message_at
          if worker.deadline && now > worker.deadline then kill_late(worker)
          elsif worker.reason then nil
          elsif silent > CRASH_TIMEOUT && worker.pid && (crash = ExitReason.find_handled_crash(worker.pid))
            kill_crashed(worker, crash)
          elsif !worker.ending? && timeout > 0 && silent > timeout then kill_stuck(worker, silent)
          end
        end

        def kill_crashed(worker, signal)
          worker.crash = signal
          worker.kill("SIG#{signal}: native code has crashed, and Ruby's report of the crash hangs")
        end

        def kill_late(worker)
          worker.deadline = nil
          reason = "it has not stopped in time"
          requests = @fleet.unanswered(worker)
          @log.event(:worker_killed, **worker.fields, reason:, requests:) unless worker.reason
          worker.kill(reason)
        end

        def kill_stuck(worker, silent)
          return kill_mold(worker, silent) unless worker.pid

          worker.reason = "#{worker.serving? ? "no heartbeat for" : "not ready after"} #{silent.round} s"
          @log.event(:worker_killed, **worker.fields, reason: worker.reason)
          worker.deadline = @clock.call + REPORT_TIMEOUT
          worker.kill unless worker.channel.send_message("running_requests")
        end

        # Kills a stuck mold, which has not forked the worker. The mold may hang in a hook, for example. When it has
        # ended, {Fleet#remove_unforked} removes the worker.
        def kill_mold(worker, silent)
          mold = worker.mold
          worker.reason = "its mold (pid #{mold.pid}) is killed: it has not forked this worker for #{silent.round} s"
          @log.event(:worker_killed, **worker.fields, reason: worker.reason)
          mold.kill_stuck("it was killed, because it had not forked #{worker.name} for #{silent.round} s")
        end

        def ping_workers(now)
          shortest = @fleet.serving.map { |worker| worker.mold.configuration.worker_timeout }.select(&:positive?).min
          return if shortest.nil? || now - @pinged_at < [PING_INTERVAL, shortest / 4.0].min

          @pinged_at = now
          @fleet.serving.each { |worker| worker.channel.send_message("ping") }
        end
      end
    end
  end
end
