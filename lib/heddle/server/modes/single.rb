# frozen_string_literal: true

module Heddle
  class Server
    module Modes
      # Mode single. Runs one request at a time, on the main thread. On that thread a debugger can use the terminal, and
      # may stop a request for as long as it likes. The loop with the sockets runs in another thread.
      class Single < Threads
        # @see Fibers#run
        def run(app, listeners, around, &ready)
          thread = Thread.new { serve(app, listeners, around, &ready) }
          thread.report_on_exception = false # Thread#value raises the exception
          ThreadGuard.new(@log, pass: -> { @runners.running? }) { stop }.during { work }
          thread.value
        ensure
          stop(now: true)
          thread&.join
        end

        private

        def size = 1

        # Another thread may raise an exception for a request that has just ended. Such an exception must not end the
        # server.
        def work
          @runners.work
        rescue SignalException, SystemExit
          raise
        rescue Exception => e
          @log.event(:late_exception_dropped, error: ErrorText.summary(e))
          retry
        end

        def serve(app, listeners, around, &ready)
          Thread.current.name = "loop"
          looping { around.call { @servings.first.serve(app, listeners, &ready) } }
        ensure
          @runners.close
        end
      end
    end
  end
end
