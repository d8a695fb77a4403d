# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # How long to wait until a process that ended unexpectedly is started again: not at all the first time, and longer
      # each time that it ends soon. Uses no clock.
      #
      # A worker that has served waits only shortly: a client whose requests crash workers must not keep all down.
      class Backoff
        # Seconds before the second start; doubled for each further one.
        FIRST_DELAY = 0.5
        # Maximum seconds before a further start.
        MAX_DELAY = 30
        # Maximum seconds before a further start of a worker that had served.
        MAX_DELAY_AFTER_SERVING = 1
        # Seconds after which a run counts as a success.
        RESET_AFTER = 30
        private_constant :FIRST_DELAY, :MAX_DELAY, :MAX_DELAY_AFTER_SERVING, :RESET_AFTER

        def initialize
          @failures = 0
          @retry_at = 0.0
        end

        # Records an unexpected end.
        # @param now [Float] seconds
        # @param lived [Float] seconds
        # @param served [Boolean] whether it has served clients
        # @return [Numeric] seconds until it may be started
        def record_failure(now, lived, served: false)
          @failures = 0 if lived >= RESET_AFTER
          most = served ? MAX_DELAY_AFTER_SERVING : MAX_DELAY
          delay = @failures == 0 ? 0 : [FIRST_DELAY * (2**(@failures - 1)), most].min
          @failures += 1
          @retry_at = now + delay
          delay
        end

        # @return [Float] when it may be started
        attr_reader :retry_at
      end
    end
  end
end
