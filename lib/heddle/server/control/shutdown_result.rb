# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # Passes on how the server has ended to the clients that wait for its end. Safe from any thread.
      class ShutdownResult
        def initialize
          @waiting = Thread::Queue.new
          @answered = false
        end

        # Sets the result when the server has ended; only the first call counts.
        # @param answered [Boolean] whether every request was answered
        # @return [void]
        def set(answered)
          return if @waiting.closed?

          @answered = answered
          @waiting.close
        end

        # Waits until the server has ended.
        # @return [Boolean] whether every request was answered
        def wait
          @waiting.pop
          @answered
        end
      end
    end
  end
end
