# frozen_string_literal: true

module Heddle
  class Server
    module Cluster
      # How long to wait until something that ended by itself is started again: at once the first time, longer each
      # time that it does not last. Knows no clock.
      class Backoff
        # Seconds before the second start; doubled for each further one.
        FIRST = 0.5
        # Seconds at most.
        LONGEST = 30
        # Seconds that it has to have lasted to count as well.
        WELL = 30
        private_constant :FIRST, :LONGEST, :WELL

        def initialize
          @failures = 0
          @at = 0.0
        end

        # It has ended by itself.
        # @param now [Float] seconds
        # @param lived [Float] seconds
        # @return [Numeric] seconds until it may be started
        def failed(now, lived)
          @failures = 0 if lived >= WELL
          delay = @failures == 0 ? 0 : [FIRST * (2**(@failures - 1)), LONGEST].min
          @failures += 1
          @at = now + delay
          delay
        end

        # @return [Float] when it may be started
        attr_reader :at
      end
    end
  end
end
