# frozen_string_literal: true

module Heddle
  class Scheduler
    # Ruby threads that run blocking work, so that only the calling fiber waits.
    #
    # The pool has no maximum size. With a maximum it could deadlock, because running work may wait for queued work. So
    # a thread is started whenever more work is queued than threads are idle. Idle threads end after {IDLE} seconds.
    #
    # @api private
    class ThreadPool
      # Seconds after which an idle thread ends.
      IDLE = 5.0

      # @param idle [Numeric] seconds after which an idle thread ends
      def initialize(idle: IDLE)
        @idle_limit = idle
        @lock = Thread::Mutex.new
        @queue = Thread::Queue.new
        @threads = []
        @idle = 0
        @process = Process.pid
      end

      # @return [Boolean] false: a parent process has made the pool, whose threads don't exist here
      def of_this_process? = @process == Process.pid

      # Runs the block on another thread while the calling fiber waits. If Ruby can't start a thread, for example while
      # the process ends, the block runs on the calling thread.
      #
      # If an exception (a timeout, a cancellation) is raised in the fiber meanwhile, the block's wait in a system call
      # is interrupted. This method raises the exception only when the block has ended, because the block may use the
      # fiber's stack.
      #
      # @return [Object] the block's value
      # @raise the exception of the block, or the one raised in the fiber
      def run(&work)
        job = Job.new(work)
        queued = @lock.synchronize do
          raise ThreadError, "this thread pool is closed" if @queue.closed?

          @queue << job if @queue.size < @idle || start
        end
        queued ? Account.wait_for(Account::OFFLOADED) { job.value } : Fiber.blocking { work.call }
      end

      # @return [Integer] number of threads
      def size
        @lock.synchronize { @threads.size }
      end

      # @return [Integer] number of threads that wait for work
      def idle
        @lock.synchronize { @idle }
      end

      # Accepts no more work. Waits until all work is done and all threads have ended.
      def close
        threads = @lock.synchronize do
          @queue.close
          @threads.dup
        end
        threads.each(&:join)
      end

      private

      # @return [Boolean] false: Ruby can't start a thread
      def start
        thread = Thread.new { serve }
        thread.name = "heddle offload"
        @threads << thread
        true
      rescue ThreadError
        false
      end

      def serve
        Thread.current[:heddle_pool_thread] = true # the scheduler's hook io_wait reads it
        while (job = take)
          job.run
        end
      ensure
        @lock.synchronize { @threads.delete(Thread.current) }
        run_rest
      end

      # Runs work that was queued just when this thread stopped waiting. {#run} still counted this thread as idle, so it
      # started no other.
      def run_rest
        @queue.pop(true).run until @queue.empty?
      rescue ThreadError # another thread has taken it
        nil
      end

      def take
        @lock.synchronize { @idle += 1 }
        @queue.pop(timeout: @idle_limit)
      ensure
        @lock.synchronize { @idle -= 1 }
      end
    end
  end
end
