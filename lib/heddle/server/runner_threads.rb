# frozen_string_literal: true

module Heddle
  class Server
    # The threads that run the application in modes thread and single. Each runs one request at a time. The loop begins
    # at most as many requests as there are threads. Further requests wait in the queue of the loop's sockets.
    class RunnerThreads
      include MonotonicClock

      # Seconds within which the threads must end when the server stops. A thread that takes longer is killed.
      STOP_TIMEOUT = 5

      # Seconds between two attempts to replace a thread while the system allows no more threads.
      RETRY_INTERVAL = 0.1
      private_constant :STOP_TIMEOUT, :RETRY_INTERVAL

      # @return [Integer] the number of threads
      attr_reader :size

      # @param size [Integer] the number of threads
      def initialize(size)
        @size = size
        @requests = Thread::Queue.new
        @threads = []
        @lock = Thread::Mutex.new
        @running = {}.compare_by_identity
        @freed = 0
        @sockets = nil
      end

      # @param sockets [Net::Sockets] the sockets of the calling loop
      # @return [void]
      def serve(sockets) = @sockets = sockets

      # Starts the threads.
      # @return [void]
      def start
        size.times { |index| @threads << start_thread("runner #{index + 1}") }
      end

      # Queues a request, or a callback of a WebSocket, for the next free thread.
      # @param request [#run, #cancel, #fiber]
      # @return [void]
      def <<(request)
        @requests << request
      end

      # Finds the thread that serves a request. May be called from any thread.
      # @param fiber [Fiber] the request's runner (a fiber of the loop)
      # @return [Thread, nil] nil: no thread runs the request
      def serving(fiber)
        all = @running.to_a # a copy, because other threads change @running meanwhile
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

      # Runs requests on the calling thread until {#close} is called.
      # @return [void]
      def work
        # An exception that cancels a request must be raised while that request runs, not between two requests.
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

      # Called when no more requests come. Each thread ends after its current request.
      # @return [void]
      def close = @requests.close

      # Calls {#close}, and waits until the threads have ended. Kills those that take too long.
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

      # Starts a new thread when the application has ended one, for example with Thread.exit. Called in the old thread,
      # which tries again until the new thread could be started.
      def replace(name)
        @lock.synchronize { @threads.keep_if(&:alive?) << start_thread(name) }
      rescue ThreadError # the system allows no more threads, or the program is ending
        sleep RETRY_INTERVAL
        retry if !@requests.closed? && Thread.main.alive?
      end

      # Clears the thread's fiber storage, which begins as a copy of the creator's storage, and which each request may
      # change. Thread locals remain, as in any server with threads.
      def clear_storage = Fiber.current.storage&.each_key { |key| Fiber[key] = nil }

      def change_freed(by)
        @freed += by
        @sockets.limit = size + @freed if @sockets && !@sockets.closed?
      end
    end
  end
end
