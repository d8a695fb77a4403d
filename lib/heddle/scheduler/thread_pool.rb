# frozen_string_literal: true

module Heddle
  class Scheduler
    # Threads that run blocking work while only the asking fiber waits.
    #
    # A thread is started whenever more work is queued than threads are idle: queued work may be what unblocks the
    # work under way, so a fixed number could deadlock. Idle ones end after a while.
    #
    # @api private
    class ThreadPool
      # Seconds that an idle thread stays.
      IDLE = 5.0

      # @param idle [Numeric] seconds that an idle thread stays
      def initialize(idle: IDLE)
        @idle_limit = idle
        @lock = Thread::Mutex.new
        @queue = Thread::Queue.new
        @threads = []
        @idle = 0
        @process = Process.pid
      end

      # A forked child has none of its parent's threads.
      # @return [Boolean]
      def of_this_process? = @process == Process.pid

      # Runs the block on another thread; the calling fiber waits. If Ruby can't start a thread, as
      # while the process ends, the block runs on the calling thread.
      #
      # When an exception (a timeout, a cancellation) is raised in the fiber meanwhile, the block is interrupted where
      # it waits in a system call. This method raises the exception only when the block has ended, because the block may
      # use the fiber's stack.
      #
      # @return [Object] the block's value
      # @raise what the block raises, or what was raised in the fiber
      def run(&work)
        job = Job.new(work)
        queued = @lock.synchronize do
          raise ThreadError, "this thread pool is closed" if @queue.closed?

          @queue << job if @queue.size < @idle || start
        end
        queued ? Account.wait_for(Account::OFFLOADED) { job.value } : Fiber.blocking { work.call }
      end

      # @return [Integer] threads alive now
      def size
        @lock.synchronize { @threads.size }
      end

      # @return [Integer] threads that wait for work now
      def idle
        @lock.synchronize { @idle }
      end

      # Accepts no more work, and waits until running and queued work, and then all threads, have ended.
      def close
        threads = @lock.synchronize do
          @queue.close
          @threads.dup
        end
        threads.each(&:join)
      end

      private

      # @return [Boolean] false: Ruby starts no thread
      def start
        thread = Thread.new { serve }
        thread.name = "heddle offload"
        @threads << thread
        true
      rescue ThreadError
        false
      end

      def serve
        Thread.current[:heddle_pool_thread] = true # read by the hook io_wait
        while (job = take)
          job.run
        end
      ensure
        @lock.synchronize { @threads.delete(Thread.current) }
        run_rest
      end

      # Runs work that was queued just as this thread stopped waiting: {#run} still counted it as idle, and started no
      # thread for the work.
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
