# frozen_string_literal: true

module Heddle
  class Server
    # The threads that run the application, each one request at a time. A loop begins at most as many requests as there
    # are threads. Further requests wait in the queue of its sockets.
    class RunnerThreads
      include MonotonicClock

      # Seconds that the threads may take to end.
      STOP_TIMEOUT = 5
      private_constant :STOP_TIMEOUT

      # @return [Integer]
      attr_reader :size

      # @param size [Integer] threads
      def initialize(size)
        @size = size
        @requests = Thread::Queue.new
        @threads = []
        @running = {}.compare_by_identity
        @freed = 0
        @sockets = nil
      end

      # @param sockets [Net::Sockets] the loop's sockets; call it in that loop
      # @return [void]
      def serve(sockets) = @sockets = sockets

      # Starts the threads.
      # @return [void]
      def start
        size.times { |index| @threads << start_thread("runner #{index + 1}") }
      end

      # Queues a request for the next free thread.
      # @param request [#run, #cancel, #fiber]
      # @return [void]
      def <<(request)
        @requests << request
      end

      # May be called from any thread.
      # @param fiber [Fiber] a runner of the loop
      # @return [Thread, nil] the thread that runs this runner's request
      def serving(fiber)
        all = @running.to_a # a copy, because other requests come and go
        all.find { |_, request| request.fiber.equal?(fiber) }&.first
      end

      # @return [Boolean] whether a request runs
      def running? = !@running.empty?

      # Called in the loop. While the block runs, its request occupies no thread, so one more request may begin.
      # @return what the block returns
      def freed
        change_freed(1)
        yield
      ensure
        change_freed(-1)
      end

      # Runs requests, on the calling thread, until {#close}.
      # @return [void]
      def work
        # An exception that ends a request must be raised in it, not between two requests.
        Thread.handle_interrupt(Cancelled => :never) do
          while (request = @requests.pop)
            @running[Thread.current] = request
            request.run
            @running.delete(Thread.current)
            clear_storage
          end
        end
      rescue Cancelled
        # Drops an exception that came too late for its request.
      ensure
        @running.delete(Thread.current)
      end

      # Called when no more requests come: the threads end after their current ones.
      # @return [void]
      def close = @requests.close

      # Calls {#close}, and waits until the threads have ended.
      # @return [void]
      def stop
        close
        deadline = now + STOP_TIMEOUT
        @threads.each { |thread| thread.join([deadline - now, 0].max) || thread.kill }
        @threads.clear
      end

      private

      def start_thread(name)
        Thread.new do
          Thread.current.name = name
          clear_storage
          work
        ensure
          replace(name) unless @requests.closed?
        end
      end

      # Starts a thread in place of one that the application has ended.
      def replace(name)
        @threads << start_thread(name)
      rescue ThreadError
        # The whole program is ending.
      end

      # The fiber storage is a copy of the creating thread's, or was changed by the last request. Thread locals stay, as
      # in any program with threads.
      def clear_storage = Fiber.current.storage&.each_key { |key| Fiber[key] = nil }

      def change_freed(by)
        @freed += by
        @sockets.limit = size + @freed if @sockets && !@sockets.closed?
      end
    end
  end
end
