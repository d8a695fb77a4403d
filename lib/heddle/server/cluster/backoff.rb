# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # How long to wait until a process that ended unexpectedly is started again: not at all the first time, and longer
      # each time that it ends soon. Uses no clock.
      class Backoff
        # Seconds before the second start; doubled for each further one.
        FIRST_DELAY = 0.5
        # Maximum seconds before a further start.
        MAX_DELAY = 30
        # Seconds after which a run counts as a success.
        RESET_AFTER = 30
        private_constant :FIRST_DELAY, :MAX_DELAY, :RESET_AFTER

        def initialize
          @failures = 0
          @retry_at = 0.0
        end

        # Records an unexpected end.
        # @param now [Float] seconds
        # @param lived [Float] seconds
        # @return [Numeric] seconds until it may be started
        def record_failure(now, lived)
          @failures = 0 if lived >= RESET_AFTER
          delay = @failures == 0 ? 0 : [FIRST_DELAY * (2**(@failures - 1)), MAX_DELAY].min
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
