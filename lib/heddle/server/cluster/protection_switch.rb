# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Decides whether new workers have protections. An operator can switch protections on and off for all workers.
      # After several crashes of protected workers, new workers get no protections.
      class ProtectionSwitch
        # This many crashes of protected workers within PERIOD seconds switch the protections of new workers off.
        CRASHES = 2
        PERIOD = 600
        private_constant :CRASHES, :PERIOD

        # Two reasons why a worker is unprotected. {#trip} writes the third one.
        CANARY = "canary_unprotected"
        OPERATOR = "heddle protect off"

        # @param log [#event]
        # @param clock [#call] returns the time in seconds
        def initialize(log, clock)
          @log = log
          @clock = clock
          @setting = nil
          @crashes = []
        end

        # @return [Boolean] whether crashes have switched the protections of new workers off
        def tripped? = @setting.is_a?(String) && @setting != OPERATOR

        # @param worker [Integer] the number of a new worker
        # @param configuration [Configuration]
        # @return [true, String, nil] the argument `protect` of {Server#initialize}
        def setting_for(worker, configuration)
          return CANARY if worker < configuration.unprotected_workers

          @setting
        end

        # Switches the protections of all workers for an operator. Workers that `canary_unprotected` leaves unprotected
        # remain so.
        # @param on [Boolean]
        # @param workers [Array<WorkerHandle>]
        # @return [void]
        def switch(on, workers)
          @setting = on || OPERATOR
          @crashes.clear
          workers.each do |worker|
            next if worker.protect == CANARY

            worker.protect = @setting
            worker.channel.send_message("protect", reason: (OPERATOR unless on))
          end
        end

        # Counts the worker's end if it was a crash.
        # @param worker [WorkerHandle]
        # @param status [Process::Status]
        # @return [void]
        def record_exit(worker, status)
          return unless status.signaled? && protected?(worker)

          name = worker.crash || Signal.signame(status.termsig)
          return unless ExitReason::CRASHES.include?(name)

          now = @clock.call
          @crashes.reject! { |at, _| at <= now - PERIOD }
          @crashes << [now, "SIG#{name}"]
          trip if @crashes.size >= CRASHES
        end

        # @return [Hash{Symbol => Object}] its part of the master's status
        def to_h = { off: (@setting if @setting.is_a?(String)), tripped: tripped? }

        private

        def protected?(worker)
          worker.protect.nil? ? worker.mold.configuration.protect.any? : worker.protect == true
        end

        def trip
          @setting = "#{@crashes.size} workers ended by #{@crashes.map(&:last).uniq.join(" and ")} within " \
                     "#{PERIOD / 60} minutes"
          @crashes.clear
          @log.event(:protections_tripped, reason: @setting)
        end
      end
    end
  end
end
