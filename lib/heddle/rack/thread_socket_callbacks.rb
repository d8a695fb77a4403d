# frozen_string_literal: true

module Heddle
  module Rack
    # {SocketCallbacks} for an application in threads: each callback runs in a thread, and a fiber of the loop waits for
    # it.
    class ThreadSocketCallbacks < SocketCallbacks
      # A callback, as {Server::RunnerThreads} runs it.
      class Call
        # @return [Fiber] of the loop, which waits for it
        attr_reader :fiber

        def initialize(&work)
          @fiber = Fiber.current
          @work = work
          @done = Thread::Queue.new
          @cancelled = false
          @thread = nil
        end

        # In the thread.
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

        # In the fiber.
        # @return [Exception, nil] what the callback has raised
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

      NO_FIBERS = "Heddle::WebSocket.serve runs its block in a fiber, which mode thread does not have: use callbacks " \
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
