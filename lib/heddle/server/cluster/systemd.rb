# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Notifies systemd of the state of a master and its workers.
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

        # Reports that all workers serve, for the first time or again.
        # @param problem [String, nil] why they serve the code from before the reload
        # @return [void]
        def ready(problem = nil)
          @served = true
          count = @master.fleet.size
          text = "#{count} #{count == 1 ? "worker serves" : "workers serve"} #{@master.resources.urls.join(", ")}"
          @notify.ready(problem ? "#{text}; not reloaded: #{problem}" : text)
        end

        # Reports that new workers replace the old ones. The caller must call {#reloaded} at the end: systemd waits for
        # it. Before the first worker serves there is nothing to report.
        # @return [void]
        def reloading
          @notify.reloading if @served
        end

        # @param problem [String, nil] see {#ready}
        # @return [void]
        def reloaded(problem = nil)
          ready(problem) if @served
        end

        # @param pid [Integer, nil] of the master that takes over; nil: there is none
        # @return [void]
        def stopping(pid = nil) = pid ? @notify.main_pid(pid) : @notify.stopping

        # Sends the watchdog notification when it is due, as long as some worker's loop runs. Workers whose loop is
        # blocked are replaced by the master.
        # @param now [Float] seconds
        # @return [void]
        def send_watchdog(now)
          return if @interval.nil? || now < @next_watchdog_at

          @next_watchdog_at = now + @interval
          @notify.watchdog if @master.fleet.serving.any? { |one| loop_running?(one) }
        end

        # @return [Float, nil] when the next notification is due
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
