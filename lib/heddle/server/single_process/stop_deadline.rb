# frozen_string_literal: true

module Heddle
  class Server
    module SingleProcess
      # Ends a server with a single process when its requests don't end. A cancellation reaches a fiber only when the
      # fiber waits, but a request may compute without ever waiting. In a cluster, the master ends workers with such
      # requests ({Cluster::OverdueWorkers}).
      class StopDeadline
        # Seconds within which cancelled requests must end.
        CANCEL_TIMEOUT = 5

        # @param log [Log]
        def initialize(log)
          @log = log
          @thread = nil
        end

        # Starts a thread that ends the process when `seconds` and then {CANCEL_TIMEOUT} have passed, unless {#cancel}
        # is called before. The loop can't do this, because it may be blocked.
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
