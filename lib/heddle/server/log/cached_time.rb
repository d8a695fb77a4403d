# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # The time of a log line, to the second. The text is cached, so that it is formatted at most once a second.
      class CachedTime
        # @param format [String] see Time#strftime
        def initialize(format)
          @format = format
          @second = @words = nil
        end

        # @return [String]
        def to_s
          second = Process.clock_gettime(Process::CLOCK_REALTIME, :second)
          return @words if second == @second

          @second = second
          @words = Time.at(second).strftime(@format)
        end
      end
    end
  end
end
