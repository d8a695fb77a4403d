# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The workers: their wanted number, their states, and their replacements. Called by the master,
      # in one thread.
      class Fleet
        # Seconds after `stop_timeout` at which a worker that has not ended is killed.
        KILL_DELAY = 5
        # Boot failures, before any worker has served, after which the server gives up.
        MAX_BOOT_FAILURES = 3
        private_constant :KILL_DELAY, :MAX_BOOT_FAILURES

        # @return [Integer] the wanted number of workers
        attr_reader :size
        # @return [Integer] the wanted number of reserve workers; they are numbered after the others
        attr_reader :reserves
        # @return [MoldHandle, nil] the mold that forks new workers
        attr_accessor :mold
        # @return [Integer] workers that have ended unexpectedly
        attr_reader :restarts
        # @return [String, nil] why no worker could begin to serve
        attr_reader :failure

        # @param size [Integer]
        # @param scoreboard [Net::Scoreboard]
        # @param log [#event]
        # @param clock [#call] seconds
        # @param protection [ProtectionSwitch] whether new workers are protected
        def initialize(size, scoreboard, log, clock, protection: ProtectionSwitch.new(log, clock))
          @size = size
          @reserves = 0
          @scoreboard = scoreboard
          @log = log
          @clock = clock
          @protection = protection
          @workers = []
          @backoffs = Hash.new { |all, index| all[index] = Backoff.new }
          @unknown_exits = {}
          @any_served = false
          @boot_failures = @restarts = 0
          @unclean = false
        end

        # @return [Array<WorkerHandle>] all workers, in the order of their numbers
        def workers = @workers.sort_by { |worker| [worker.index, worker.started_at] }

        # @return [Array<WorkerHandle>] the serving workers, in the order of their numbers
        def serving = workers.select(&:serving?)

        # @return [Boolean]
        def empty? = @workers.empty?

        # @return [Boolean] whether all workers serve, reserves not counted
        def complete? = (0...size).all? { |index| serving.any? { |worker| worker.index == index && !worker.reserve? } }

        # @return [Boolean] whether a worker that was asked to end had to be killed, or has left requests unanswered
        def unclean? = @unclean

        # Sets the wanted numbers. A process whose number changes from a worker's to a reserve's, or back, is replaced.
        # @param number [Integer]
        # @param reserves [Integer]
        # @return [void]
        def resize(number, reserves = @reserves)
          most = [(@scoreboard.slots / 2) - reserves, 1].max
          @log.event(:workers_limited, workers: most, wanted: number) if number > most
          @size = number.clamp(1, most)
          @reserves = reserves
          serving.each { |worker| retire(worker, "leave") unless role_kept?(worker) }
        end

        # Starts the missing workers whose backoff has passed.
        # @return [Float, nil] when the next one may be started
        def start_missing
          return unless mold&.ready?

          missing = (0...(size + reserves)).reject do |index|
            @workers.any? { |one| one.index == index && !one.ending? && role_kept?(one) }
          end
          later = missing.filter_map do |index|
            at = @backoffs[index].retry_at
            next at if at > @clock.call

            start(index)
            nil
          end
          later.min
        end

        # @param index [Integer]
        # @param replaces [WorkerHandle, nil] the worker that ends as soon as the new one serves
        # @return [WorkerHandle, nil] nil: there is no mold now, no descriptor, or no free slot, because too many
        #   workers have not ended yet
        def start(index, replaces: nil)
          return unless mold&.ready?

          ours, theirs = MessageSocket.pair
          slot = @scoreboard.claim(mold.generation, index) or return ours.close
          rank = reserve_rank(index)
          worker = WorkerHandle.new(index:, rank:, slot:, channel: ours, mold:, replaces:, now: @clock.call)
          worker.protect = @protection.setting_for(index, mold.configuration)
          @workers << worker
          mold.channel.send_message("spawn", index:, rank:, slot:, protect: worker.protect, io: theirs.io)
          worker
        rescue SystemCallError => e
          @log.event(:worker_not_started, worker: index, reason: e.message)
          nil
        ensure
          theirs&.close
        end

        # @param worker [WorkerHandle]
        # @param how [String] "leave": other workers continue; "part": they continue, but can't receive connections;
        #   "stop": no worker continues; "now": ends at once
        # @return [void]
        def retire(worker, how)
          worker.state = :ending
          configuration = worker.mold.configuration
          delay = how == "stop" ? configuration.drain_delay : 0
          worker.deadline = @clock.call + delay + configuration.stop_timeout + KILL_DELAY
          worker.channel.send_message(how)
        end

        # Records that the mold has forked a worker.
        # @return [void]
        def record_spawn(slot, pid)
          worker = @workers.find { |one| one.slot == slot && one.pid.nil? } or return
          worker.pid = pid
          worker.forked_at = @clock.call
          note_progress(worker.mold)
          status = @unknown_exits.delete(pid)
          handle_worker_exit(worker, status) if status
        end

        # @return [void]
        def record_failed_spawn(slot, message)
          worker = @workers.find { |one| one.slot == slot && one.pid.nil? } or return
          note_progress(worker.mold)
          handle_loss(worker, "it could not be forked: #{message}")
        end

        # Called when a mold has ended, and its last messages were read. A process between it and a worker may have hung
        # and keep the worker's channel open.
        # @param mold [MoldHandle]
        # @return [void]
        def remove_unforked(mold)
          @workers.select { |one| one.pid.nil? && one.mold.equal?(mold) }.each do |one|
            handle_loss(one, "its mold has ended")
          end
        end

        # Called when a worker has closed its end of the channel. If its process is known, {#handle_exit} follows.
        # @param worker [WorkerHandle]
        # @yield reads what the molds have sent: before it closes the channel, a mold reports the fork or why it failed
        # @return [void]
        def handle_closed_channel(worker)
          worker.channel_closed = true
          yield if worker.pid.nil?
          handle_loss(worker, "its mold has ended") if worker.pid.nil? && @workers.include?(worker)
        end

        # Records that a worker accepts requests.
        # @param worker [WorkerHandle]
        # @return [void]
        def mark_ready(worker)
          return if worker.ending?

          replaced = worker.mark_serving(@clock.call)
          @any_served = true
          retire(replaced, "leave") if replaced&.serving?
          retire(worker, "leave") unless role_kept?(worker)
        end

        # Handles the end of a child of the master.
        # @param pid [Integer]
        # @param status [Process::Status]
        # @return [void]
        def handle_exit(pid, status)
          worker = @workers.find { |one| one.pid == pid }
          return handle_worker_exit(worker, status) if worker

          # A worker that the mold has not reported yet, or an orphaned child of a worker.
          @unknown_exits[pid] = status
          @unknown_exits.shift if @unknown_exits.size > @workers.size + 100
        end

        # @return [Integer, nil] requests that it had begun or received; nil: none
        def unanswered(worker) = @scoreboard.read(worker.slot)&.fetch(:in_flight)&.nonzero?

        private

        # A mold forks one worker after another: the others wait for it, and are not late while it works.
        def note_progress(mold)
          @workers.each { |one| one.last_message_at = @clock.call if one.pid.nil? && one.mold.equal?(mold) }
        end

        # @return [Integer] the rank of this number among the reserves, from 1 on; 0: it is an ordinary worker's
        def reserve_rank(index) = [index - size + 1, 0].max

        def role_kept?(worker) = worker.index < size + reserves && worker.rank == reserve_rank(worker.index)

        def handle_worker_exit(worker, status)
          @protection.record_exit(worker, status)
          return handle_loss(worker, worker.reason || ExitReason.describe(status)) unless worker.ending?

          @unclean = true unless status.success?
          remove(worker)
        end

        def handle_loss(worker, how)
          # A request may end a worker before the master reads its message "ready".
          served = worker.serving? || @scoreboard.read(worker.slot)&.fetch(:accepted)&.positive?
          requests = unanswered(worker)
          remove(worker)
          return if worker.ending?

          @restarts += 1

          return report_boot_failure(worker, how) unless served || @any_served || worker.reserve?
          return report_failed_replacement(worker, how) if worker.replaces

          now = @clock.call
          delay = @backoffs[worker.index].record_failure(now, now - worker.started_at, served:)
          @log.event(:worker_ended, **worker.fields, reason: how, requests:, delay:)
        end

        def report_failed_replacement(worker, how)
          @log.event(:worker_replacement_failed, **worker.fields, reason: how)
          worker.failure = "#{worker.name} has ended before it could serve: #{worker.error || how}"
        end

        def report_boot_failure(worker, how)
          @boot_failures += 1
          if @boot_failures >= MAX_BOOT_FAILURES
            return @failure = "no worker can serve: #{worker.name} has ended: #{worker.error || how}"
          end

          delay = @backoffs[worker.index].record_failure(@clock.call, 0)
          @log.event(:worker_boot_failed, **worker.fields, reason: how, delay:)
        end

        def remove(worker)
          @workers.delete(worker)
          worker.channel.close
          @scoreboard.free(worker.slot)
        end
      end
    end
  end
end
