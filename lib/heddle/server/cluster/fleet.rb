# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The workers: their wanted number, their states, and their replacements. Called by the master,
      # in one thread.
      class Fleet
        # Seconds beyond `stop_timeout` that a worker may take to end.
        GRACE = 5
        # A worker of the first ones that fails so often before any has served is no accident.
        TRIES = 3
        private_constant :GRACE, :TRIES

        # @return [Integer] how many workers there are to be
        attr_reader :size
        # @return [Integer] how many reserve workers there are to be besides; their numbers follow
        attr_reader :reserves
        # @return [MoldHandle, nil] what forks new ones
        attr_accessor :mold
        # @return [Integer] workers that have ended unexpectedly
        attr_reader :lost
        # @return [String, nil] why none of the first ones could serve
        attr_reader :failure

        # @param size [Integer]
        # @param scoreboard [Net::Scoreboard]
        # @param log [#notice]
        # @param clock [#call] seconds
        # @param reserves [Integer]
        def initialize(size, scoreboard, log, clock, reserves: 0)
          @size = size
          @reserves = reserves
          @scoreboard = scoreboard
          @log = log
          @clock = clock
          @workers = []
          @backoffs = Hash.new { |all, index| all[index] = Backoff.new }
          @strangers = {}
          @served = false
          @early = @lost = 0
          @unclean = false
        end

        # @return [Array<WorkerHandle>] all that there are, in the order of their numbers
        def workers = @workers.sort_by { |worker| [worker.index, worker.born] }

        # @return [Array<WorkerHandle>] those that serve, in the order of their numbers
        def serving = workers.select(&:serving?)

        # @return [Boolean]
        def empty? = @workers.empty?

        # @return [Boolean] whether as many serve as are to be, whatever becomes of the reserves
        def complete? = (0...size).all? { |index| serving.any? { |worker| worker.index == index && !worker.reserve? } }

        # @return [Boolean] whether a worker had to be killed, or has left requests unanswered, while it was to end
        def unclean? = @unclean

        # A reserve does not become a worker, nor a worker a reserve: a process with a number of the other kind is
        # replaced.
        # @param number [Integer]
        # @param reserves [Integer]
        # @return [void]
        def resize(number, reserves = @reserves)
          @size = [number, 1].max
          @reserves = reserves
          serving.each { |worker| retire(worker, "leave") unless in_place?(worker) }
        end

        # Starts those that are missing, as far as they may be started now.
        # @return [Float, nil] when to look again
        def fill
          return unless mold&.ready?

          missing = (0...(size + reserves)).reject do |index|
            @workers.any? { |one| one.index == index && !one.ending? && in_place?(one) }
          end
          later = missing.filter_map do |index|
            at = @backoffs[index].at
            next at if at > @clock.call

            start(index)
            nil
          end
          later.min
        end

        # @param index [Integer]
        # @param replaces [WorkerHandle, nil] the worker that ends as soon as the new one serves
        # @return [WorkerHandle, nil] nil: there is no mold now, no descriptor, or no free slot, as too many
        #   have not ended yet
        def start(index, replaces: nil)
          return unless mold&.ready?

          ours, theirs = MessageSocket.pair
          slot = @scoreboard.take(mold.generation, index) or return ours.close
          rank = rank_of(index)
          worker = WorkerHandle.new(index:, rank:, slot:, channel: ours, mold:, replaces:, now: @clock.call)
          @workers << worker
          mold.channel.send_message("spawn", index:, rank:, slot:, io: theirs.io)
          worker
        rescue SystemCallError => e
          @log.notice("worker #{index} can't be started now: #{e.message}")
          nil
        ensure
          theirs&.close
        end

        # @param worker [WorkerHandle]
        # @param how [String] "leave": others go on, "stop": none does, "now"
        # @return [void]
        def retire(worker, how)
          worker.state = :ending
          worker.deadline = @clock.call + worker.mold.configuration.stop_timeout + GRACE
          worker.channel.send_message(how)
        end

        # The mold has forked a worker, or could not.
        # @return [void]
        def spawned(slot, pid)
          worker = @workers.find { |one| one.slot == slot && one.pid.nil? } or return
          worker.pid = pid
          status = @strangers.delete(pid)
          ended(worker, status) if status
        end

        # @return [void]
        def unspawned(slot, message)
          worker = @workers.find { |one| one.slot == slot && one.pid.nil? } or return
          gone(worker, "could not be forked: #{message}")
        end

        # Its end of the channel is closed. If its process is known, that is waited for.
        # @param worker [WorkerHandle]
        # @return [void]
        def silent(worker)
          worker.silent = true
          gone(worker, "has vanished with its mold") if worker.pid.nil?
        end

        # A worker accepts requests.
        # @param worker [WorkerHandle]
        # @return [void]
        def ready(worker)
          return if worker.ending?

          replaced = worker.serve
          @served = true
          retire(replaced, "leave") if replaced&.serving?
          retire(worker, "leave") unless in_place?(worker)
        end

        # A child of the master has ended.
        # @param pid [Integer]
        # @param status [Process::Status]
        # @return [void]
        def reaped(pid, status)
          worker = @workers.find { |one| one.pid == pid }
          return ended(worker, status) if worker

          # A worker that the mold has not reported yet, or a child that a worker has left behind.
          @strangers[pid] = status
          @strangers.shift if @strangers.size > 100
        end

        # A worker that should have replaced another and could not, and how it ended.
        FailedReplacement = Data.define(:worker, :reason)

        # @return [FailedReplacement, nil] the last one
        attr_accessor :failed_replacement

        private

        # Among the reserves, counted from 1; 0: this number is a worker's.
        def rank_of(index) = [index - size + 1, 0].max

        def in_place?(worker) = worker.index < size + reserves && worker.rank == rank_of(worker.index)

        def ended(worker, status)
          return gone(worker, worker.reason || Endings.of(status)) unless worker.ending?

          @unclean = true unless status.success?
          remove(worker)
        end

        def gone(worker, how)
          served = worker.serving?
          remove(worker)
          return if worker.ending?

          @lost += 1

          return tell_of_early_end(worker, how) unless served || @served || worker.reserve?
          return give_up_replacing(worker, how) if worker.replaces

          now = @clock.call
          delay = @backoffs[worker.index].failed(now, now - worker.born)
          again = delay == 0 ? "now" : "in #{delay} s"
          @log.notice("#{worker.name} #{how}; a new one starts #{again}")
        end

        def give_up_replacing(worker, how)
          reason = "#{worker.name} #{how} before it could serve"
          @log.notice("#{reason}; the one that it was to replace goes on")
          self.failed_replacement = FailedReplacement.new(worker:, reason:)
        end

        def tell_of_early_end(worker, how)
          @early += 1
          return @failure = "no worker can serve: #{worker.name} #{how}" if @early >= TRIES

          delay = @backoffs[worker.index].failed(@clock.call, 0)
          @log.notice("#{worker.name} #{how} before it could serve; a new one starts in #{delay} s")
        end

        def remove(worker)
          @workers.delete(worker)
          worker.close
          @scoreboard.free(worker.slot)
        end
      end
    end
  end
end
