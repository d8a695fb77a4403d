# frozen_string_literal: true

module Heddle
  class Server
    class Control
      # How the server ends, for the clients that wait for its end. From any thread.
      class Ending
        def initialize
          @waiting = Thread::Queue.new
          @answered = false
        end

        # The server has ended; only the first report counts.
        # @param answered [Boolean] whether every request was answered
        # @return [void]
        def report(answered)
          return if @waiting.closed?

          @answered = answered
          @waiting.close
        end

        # Waits until the server has ended.
        # @return [Boolean] whether every request was answered
        def answered?
          @waiting.pop
          @answered
        end
      end
    end
  end
end
