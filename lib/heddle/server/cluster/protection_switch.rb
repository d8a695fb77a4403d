# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Whether new workers have their protections. An operator switches them for all workers; workers that crash switch
      # them off for new ones.
      class ProtectionSwitch
        # The number of crashes of protected workers, and the seconds within which they switch the protections off.
        CRASHES = 2
        PERIOD = 600
        private_constant :CRASHES, :PERIOD

        # The reasons why a worker is unprotected.
        CANARY = "canary_unprotected"
        OPERATOR = "heddle protect off"

        # @param log [#event]
        # @param clock [#call] seconds
        def initialize(log, clock)
          @log = log
          @clock = clock
          @setting = nil
          @crashes = []
        end

        # @return [Boolean] whether crashes have switched the protections off
        def tripped? = @setting.is_a?(String) && @setting != OPERATOR

        # @param worker [Integer] its number
        # @param configuration [Configuration]
        # @return [Boolean, String, nil] for {Server#initialize}
        def setting_for(worker, configuration)
          return CANARY if worker < configuration.unprotected_workers

          @setting
        end

        # Switches the protections for an operator, in all workers except those that canary_unprotected leaves
        # unprotected.
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

        # @return [Hash{Symbol => Object}] for the status
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
