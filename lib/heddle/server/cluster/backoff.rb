# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # Computes the delay before a process that has ended unexpectedly is started again. The first restart has no
      # delay. The delay becomes longer each time that the process ends soon after its start. This class uses no clock.
      #
      # For a worker that has served, the delay is short. Otherwise a client whose requests crash workers could keep all
      # of them from serving.
      class Backoff
        # The delay of the second restart, in seconds. Each further restart doubles the delay.
        FIRST_DELAY = 0.5
        # Maximum number of seconds before a restart.
        MAX_DELAY = 30
        # Maximum number of seconds before the restart of a worker that has served.
        MAX_DELAY_AFTER_SERVING = 1
        # A process that has run for this many seconds counts as healthy, so its next restart has no delay.
        RESET_AFTER = 30
        private_constant :FIRST_DELAY, :MAX_DELAY, :MAX_DELAY_AFTER_SERVING, :RESET_AFTER

        def initialize
          @failures = 0
          @retry_at = 0.0
        end

        # Records an unexpected end.
        # @param now [Float] the time in seconds
        # @param lived [Float] how many seconds the process has run
        # @param served [Boolean] whether the process has served clients
        # @return [Numeric] seconds until the process may be started again
        def record_failure(now, lived, served: false)
          @failures = 0 if lived >= RESET_AFTER
          most = served ? MAX_DELAY_AFTER_SERVING : MAX_DELAY
          delay = @failures == 0 ? 0 : [FIRST_DELAY * (2**(@failures - 1)), most].min
          @failures += 1
          @retry_at = now + delay
          delay
        end

        # @return [Float] the time at which the process may be started again
        attr_reader :retry_at
      end
    end
  end
end
