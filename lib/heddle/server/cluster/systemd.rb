# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Reports the state of a master and its workers to systemd.
      class Systemd
        # @param master [Master]
        # @param notify [SystemdNotify]
        def initialize(master, notify = SystemdNotify.new)
          @master = master
          @notify = notify
          @interval = notify.interval
          @next_watchdog_at = @interval && 0.0
          @served = false
        end

        # Reports that all workers serve, at the start or after a reload.
        # @param problem [String, nil] why a reload has failed (the workers then still run the old code); nil: none has
        #   failed
        # @return [void]
        def ready(problem = nil)
          @served = true
          count = @master.fleet.size
          text = "#{count} #{count == 1 ? "worker serves" : "workers serve"} #{@master.resources.urls.join(", ")}"
          @notify.ready(problem ? "#{text}; not reloaded: #{problem}" : text)
        end

        # Reports that a reload has begun. The caller must call {#reloaded} when the reload has ended, because systemd
        # waits for the end of the reload. Does nothing before the workers have served for the first time.
        # @return [void]
        def reloading
          @notify.reloading if @served
        end

        # Reports that a reload has ended.
        # @param problem [String, nil] see {#ready}
        # @return [void]
        def reloaded(problem = nil)
          ready(problem) if @served
        end

        # Reports that this master is stopping, or that a new one has taken over.
        # @param pid [Integer, nil] the process id of the new master; nil: there is none
        # @return [void]
        def stopping(pid = nil) = pid ? @notify.main_pid(pid) : @notify.stopping

        # Sends the watchdog notification when it is due, if the loop of at least one worker runs. It is also sent while
        # single workers are blocked, because the master replaces these workers.
        # @param now [Float] the time in seconds
        # @return [void]
        def send_watchdog(now)
          return if @interval.nil? || now < @next_watchdog_at

          @next_watchdog_at = now + @interval
          @notify.watchdog if @master.fleet.serving.any? { |one| loop_running?(one) }
        end

        # @return [Float, nil] the time at which the next notification is due; nil: there is no watchdog
        attr_reader :next_watchdog_at

        private

        def loop_running?(worker)
          busy_for = @master.resources.scoreboard.read(worker.slot)&.fetch(:busy_for, nil)
          busy_for.nil? || busy_for < @interval * 2
        end
      end
    end
  end
end
