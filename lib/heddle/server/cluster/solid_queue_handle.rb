# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # The master's record of the process that runs {SolidQueue}. The mold (the process that has loaded the
      # application) forks it when all workers serve. It is replaced after a reload. All methods are called on the
      # master's thread.
      class SolidQueueHandle
        include MonotonicClock

        # Seconds between a failed fork and the next attempt.
        RETRY_INTERVAL = 5
        private_constant :RETRY_INTERVAL

        # @param log [#event]
        def initialize(log)
          @log = log
          @state = :none
          @retry_at = 0
          @pid = nil
        end

        # @return [Integer, nil] the process id; nil: the process does not run
        attr_reader :pid

        # @return [Boolean] whether the process runs, so that the master must wait for its end
        def running? = !@pid.nil?

        # Starts the process, or asks it to end if it must be replaced. It must be replaced after a reload, which
        # creates a new configuration object. A mold that a worker has forked (option `refork_after`) has the same
        # configuration object as the mold before it, so the process is kept.
        # @param mold [MoldHandle, nil] the mold that forks the workers
        # @return [void]
        def follow(mold)
          return unless mold&.ready?

          wanted = mold.configuration.solid_queue
          reset if @state == :starting && !mold.equal?(@mold) # the mold has ended before it could report the fork
          start(mold) if wanted && @state == :none && now >= @retry_at
          retire if @state == :running && !(wanted && mold.configuration.equal?(@mold.configuration))
        end

        # Records that the mold has forked the process.
        # @param pid [Integer]
        # @return [void]
        def record_spawn(pid)
          return if @state != :starting # this process is not wanted any more; it ends, because its channel is closed

          @pid = pid
          @state = :running
          signal(0) { handle_exit(pid) }
        end

        # @param problem [String] why the mold could not fork the process
        # @return [void]
        def record_failed_spawn(problem)
          @log.event(:solid_queue_not_started, reason: problem)
          @retry_at = now + RETRY_INTERVAL
          reset
        end

        # @param pid [Integer] the process id of a child that has ended
        # @return [Boolean, nil] true: this process has ended unexpectedly; false: it was asked to end; nil: the child
        #   is another process
        def handle_exit(pid)
          return unless pid == @pid

          unexpected = @state == :running
          @log.event(:solid_queue_ended, pid:) if unexpected
          reset
          unexpected
        end

        # Asks the process to end.
        # @return [void]
        def retire
          return reset unless @pid

          @state = :ending
          @deadline = now + @mold.configuration.stop_timeout + Fleet::KILL_DELAY
          signal(SolidQueue::SIGNAL)
        end

        # Kills the process if it has not ended in time.
        # @return [void]
        def kill_late = running? && @state == :ending && now > @deadline && kill

        # @return [void]
        def kill = running? && signal("KILL")

        # Called in a forked child of the master.
        # @return [void]
        def close_in_child = @channel&.close

        private

        def start(mold)
          ours, theirs = MessageSocket.pair
          @channel = ours
          @mold = mold
          @state = :starting
          mold.channel.send_message("spawn_jobs", io: theirs.io)
        rescue SystemCallError => e
          record_failed_spawn(e.message)
        ensure
          theirs&.close
        end

        def reset
          @channel&.close
          @channel = @pid = @mold = nil
          @state = :none
        end

        def signal(name)
          Process.kill(name, @pid)
        rescue Errno::ESRCH
          yield if block_given?
        end
      end
    end
  end
end
