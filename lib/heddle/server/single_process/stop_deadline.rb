# frozen_string_literal: true

module Heddle
  class Server
    module SingleProcess
      # Ends a server of one process whose requests don't end: a cancellation reaches a fiber only at a wait, so
      # requests may compute forever. A worker's master does the same with the worker ({Cluster::OverdueWorkers}).
      class StopDeadline
        # Seconds that cancelled requests may take to end.
        CANCEL_TIMEOUT = 5

        # @param log [Log]
        def initialize(log)
          @log = log
          @thread = nil
        end

        # Ends the process after `seconds` and {CANCEL_TIMEOUT}, unless {#cancel} is called before. A thread waits,
        # because the loop may be blocked.
        # @param seconds [Numeric]
        # @return [void]
        def within(seconds)
          cancel
          @thread = Thread.new do
            sleep(seconds + CANCEL_TIMEOUT)
            @log.event(:stop_timed_out, timeout: seconds + CANCEL_TIMEOUT)
            Process.exit!
          end
          @thread.name = "stop deadline"
        end

        # @return [void]
        def cancel = @thread&.kill
      end
    end
  end
end
