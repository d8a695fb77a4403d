# frozen_string_literal: true

module Heddle
  module Rack
    # {SocketCallbacks} for mode thread. Each callback runs in a thread, and a fiber of the loop waits for it.
    class ThreadSocketCallbacks < SocketCallbacks
      # A call of a callback, in the form that {Server::RunnerThreads} runs.
      class Call
        # @return [Fiber] the fiber of the loop that waits for the callback
        attr_reader :fiber

        def initialize(&work)
          @fiber = Fiber.current
          @work = work
          @done = Thread::Queue.new
          @cancelled = false
          @thread = nil
        end

        # Runs the callback. Called in the thread.
        # @return [void]
        def run
          return if @cancelled

          @thread = Thread.current
          Thread.handle_interrupt(Cancelled => :immediate) { @failure = @work.call }
        rescue Cancelled
          # The fiber no longer waits for this thread.
        ensure
          @thread = nil
          @done.close
        end

        # Waits until the callback has ended. Called in the fiber.
        # @return [Exception, nil] the exception that the callback has raised
        def wait
          @done.pop
          @failure
        rescue Cancelled => e
          cancel(e)
          raise
        end

        # Ends the thread's work on this callback.
        # @param reason [Cancelled]
        # @return [void]
        def cancel(reason)
          @cancelled = true
          @thread&.raise(reason)
        end
      end

      NO_FIBERS = "Heddle::WebSocket.serve runs its block in a fiber, but mode thread has no fibers. Use callbacks " \
                  "(Heddle::WebSocket.upgrade), or mode fiber"
      private_constant :Call, :NO_FIBERS

      # @param runners [Server::RunnerThreads]
      # @see SocketCallbacks#initialize
      def initialize(log, context, runners)
        super(log, context)
        @runners = runners
        HTTP::WebSocket.prepare(Fiber.current_scheduler)
      end

      private

      def in_loop? = false

      def run(handler, callback, client, message)
        return NoLoopError.new(NO_FIBERS) if handler.is_a?(WebSocket::BlockHandler) && callback == :on_open

        call = Call.new { super(handler, callback, client, message) }
        @runners << call
        call.wait
      end
    end
  end
end
