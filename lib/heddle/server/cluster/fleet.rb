# frozen_string_literal: true

require "heddle/server/statistics"

module Heddle
  class Server
    module Cluster
      # Manages the workers for the master: starts missing ones, records their states, and replaces them. Workers are
      # forked by the mold, the process that has loaded the application. Only the master's main thread changes the
      # fleet; the thread of the control sockets reads it.
      class Fleet
        # A process that is asked to end, or has lost its master, is killed this many seconds after `stop_timeout`.
        KILL_DELAY = 5
        # After this many failed starts the server stops, if no worker has served yet.
        MAX_BOOT_FAILURES = 3
        # The counts of {WorkerHandle#totals}.
        TOTALS = %i[answered failed rejected gone].freeze
        private_constant :MAX_BOOT_FAILURES

        # @return [Integer] how many workers should run, without the reserve workers
        attr_reader :size
        # @return [Integer] how many reserve workers should run (they serve only while all others are blocked); their
        #   numbers follow the numbers of the other workers
        attr_reader :reserves
        # @return [MoldHandle, nil] the mold that forks new workers; nil: there is none now
        attr_accessor :mold
        # @return [Integer] how many workers have ended unexpectedly
        attr_reader :restarts
        # @return [Hash{Symbol => Integer}] the sums of {WorkerHandle#totals} of the workers that have ended
        attr_reader :totals
        # @return [String, nil] why no worker can serve, so that the server must stop; nil: no reason to stop
        attr_reader :failure

        # @param size [Integer] how many workers should run
        # @param scoreboard [Net::Scoreboard]
        # @param log [#event]
        # @param clock [#call] returns the time in seconds
        # @param protection [ProtectionSwitch] decides which protections new workers have
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
          @totals = TOTALS.to_h { |name| [name, 0] }
          @unclean = false
        end

        # @return [Array<WorkerHandle>] all workers, sorted by their numbers
        def workers = @workers.sort_by { |worker| [worker.index, worker.started_at] }

        # @return [Array<WorkerHandle>] the serving workers, sorted by their numbers
        def serving = workers.select(&:serving?)

        # @return [Boolean] whether there are no workers
        def empty? = @workers.empty?

        # @return [Boolean] whether all workers serve; reserve workers don't count
        def complete? = (0...size).all? { |index| serving.any? { |worker| worker.index == index && !worker.reserve? } }

        # @return [Boolean] whether a worker that was asked to end was killed, or has not answered all requests
        def unclean? = @unclean

        # Sets how many workers and reserve workers should run. Serving processes beyond these numbers are retired. If a
        # process changes from one kind to the other, it is replaced.
        # @param number [Integer] workers; at least 1, and at most as many as the scoreboard has room for
        # @param reserves [Integer] reserve workers
        # @return [void]
        def resize(number, reserves = @reserves)
          most = [(@scoreboard.slots / 2) - reserves, 1].max
          @log.event(:workers_limited, workers: most, wanted: number) if number > most
          @size = number.clamp(1, most)
          @reserves = reserves
          serving.each { |worker| retire(worker, "leave") unless role_kept?(worker) }
        end

        # Starts the missing workers, except those whose restart is delayed ({Backoff}).
        # @return [Float, nil] the time at which the next worker may be started; nil: no start is delayed
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

        # Asks the mold to fork a worker.
        # @param index [Integer] its number
        # @param replaces [WorkerHandle, nil] the worker to end as soon as the new one serves
        # @return [WorkerHandle, nil] nil: the worker can't be started now, because there is no mold, no descriptor, or
        #   no free slot of the scoreboard (ending workers keep theirs)
        def start(index, replaces: nil)
          return unless mold&.ready?

          # If all workers have a pid, the unknown exits can only be those of orphans. They are dropped, because the new
          # worker may get the pid of such an orphan.
          @unknown_exits.clear if @workers.all?(&:pid)
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

        # Asks a worker to end.
        # @param worker [WorkerHandle]
        # @param how [String] "leave": hand connections off to the other workers; "part": other workers serve, but can't
        #   receive connections; "stop": no other worker keeps serving; "now": end at once
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

        # Records that the mold could not fork a worker.
        # @return [void]
        def record_failed_spawn(slot, message)
          worker = @workers.find { |one| one.slot == slot && one.pid.nil? } or return
          note_progress(worker.mold)
          handle_loss(worker, "it could not be forked: #{message}")
        end

        # Called when a mold has ended and its last messages were read. Removes the records of workers that the mold was
        # asked to fork and has not forked. The master can't wait until their channels close: the mold forks each worker
        # through an intermediate process, which may hang and keep the channel open.
        # @param mold [MoldHandle]
        # @return [void]
        def remove_unforked(mold)
          @workers.select { |one| one.pid.nil? && one.mold.equal?(mold) }.each do |one|
            handle_loss(one, "its mold has ended")
          end
        end

        # Called when a worker has closed its end of the channel. If the worker's process id is known, the master calls
        # {#handle_exit} later.
        # @param worker [WorkerHandle]
        # @yield reads the molds' messages. A mold reports that it has forked the worker, or could not, before it closes
        #   its copy of the channel
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

          # This is a worker that the mold has not reported yet, or an orphaned child of a worker.
          @unknown_exits[pid] = status unless @workers.all?(&:pid)
        end

        # @return [Integer, nil] how many requests the worker had received but not answered; nil: none
        def unanswered(worker) = @scoreboard.read(worker.slot)&.fetch(:in_flight)&.nonzero?

        private

        # A mold forks one worker after another. While it makes progress, the workers that it has not forked yet are not
        # overdue, so their timeouts begin again.
        def note_progress(mold)
          @workers.each { |one| one.last_message_at = @clock.call if one.pid.nil? && one.mold.equal?(mold) }
        end

        # @return [Integer] the rank of worker number `index` among the reserve workers, counted from 1; 0: it is not a
        #   reserve worker
        def reserve_rank(index) = [index - size + 1, 0].max

        def role_kept?(worker) = worker.index < size + reserves && worker.rank == reserve_rank(worker.index)

        def handle_worker_exit(worker, status)
          @protection.record_exit(worker, status)
          how = worker.reason || ExitReason.describe(status)
          return handle_loss(worker, how) unless worker.ending?

          @unclean = true unless status.success?
          lost = status.signaled? && (worker.crash || !worker.reason)
          @log.event(:worker_ended, **worker.fields, reason: how, requests: unanswered(worker)) if lost
          remove(worker)
        end

        def handle_loss(worker, how)
          # A request may crash the worker before the master has read the worker's message "ready". So a worker also
          # counts as having served if the scoreboard shows that it has accepted a connection.
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
          # A worker that was killed has reported no totals. Nearly all requests that it had begun were answered, so all
          # of them count as answered.
          served = @scoreboard.read(worker.slot)&.fetch(:requests) || 0
          @totals = Statistics.add(@totals, worker.totals || { answered: served })
          worker.channel.close
          @scoreboard.free(worker.slot)
        end
      end
    end
  end
end
