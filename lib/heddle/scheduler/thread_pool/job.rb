# frozen_string_literal: true

module Heddle
  class Scheduler
    class ThreadPool
      # A piece of work that a thread runs for a fiber.
      class Job
        # Raised in the thread to end the work, because an exception was raised in the fiber.
        class Stop < Exception; end

        # Seconds between the first attempt to end the work and the second. The pause doubles with each further attempt,
        # up to LONGEST_PAUSE.
        FIRST_PAUSE = 0.02
        LONGEST_PAUSE = 1
        # Each attempt blocks the fiber's thread for this fraction of the pause that follows it (see {#linger}). The
        # attempts become longer, because on a busy machine the work's thread may not run during a short one.
        LINGER = 0.015
        private_constant :FIRST_PAUSE, :LONGEST_PAUSE, :LINGER

        def initialize(work)
          @work = work
          @answer = Thread::Queue.new
          @lock = Thread::Mutex.new
          @thread = nil
          @stopped = false
        end

        # Runs the work on the calling thread.
        def run
          Thread.handle_interrupt(Stop => :never) do
            answer = outcome
            @lock.synchronize { @thread = nil } # from now on no thread raises Stop
            drop_late_stops
            @answer << answer
          end
        end

        # Waits for the work, and returns its value or raises its exception. If an exception was raised in the fiber
        # meanwhile, raises that one instead.
        def value
          raised = nil
          begin
            outcome = raised ? end_work { |pause| @answer.pop(timeout: pause) } : @answer.pop
          rescue Exception => e
            raised = e
            retry
          ensure
            # A killed fiber runs no rescue clause, and a switch to another fiber would not return. So this wait blocks
            # the thread.
            end_work { |pause| Fiber.blocking { @answer.pop(timeout: pause) } } unless outcome
          end
          raise raised if raised

          failed, value = outcome
          failed ? raise(value) : value
        end

        private

        def outcome
          @lock.synchronize do
            return [true, Cancelled.new] if @stopped

            @thread = Thread.current
          end
          [false, Thread.handle_interrupt(Stop => :immediate) { @work.call }]
        rescue Exception => e
          [true, e]
        end

        # @yieldparam pause [Float] seconds to wait for the outcome
        # @return [Array] the outcome
        def end_work
          pause = FIRST_PAUSE
          stop
          linger(pause)
          until (outcome = yield(pause))
            pause = [pause * 2, LONGEST_PAUSE].min
            locked { @thread&.wakeup }
            linger(pause)
          end
          outcome
        end

        # Keeps this thread in the fiber for a moment. Otherwise {Stop} can't end an IO.copy_stream in the work
        # (Ruby 3.4): copy_stream waits on the work's thread, without the GVL. Each time Stop wakes it, it asks Ruby for
        # the scheduler of the fiber's thread. Ruby returns one only while that thread runs a fiber, not the loop.
        def linger(pause)
          return unless @thread # the work has not begun, or has ended

          ending = MonotonicClock.now + (pause * LINGER)
          nil while MonotonicClock.now < ending
        end

        def stop
          locked do
            @stopped = true
            @thread&.raise(Stop)
          end
        end

        # Blocks this thread, because a killed fiber can't switch to another fiber while it waits. The work's thread
        # has the lock only for moments.
        def locked(&) = Fiber.blocking { @lock.synchronize(&) }

        # Discards the Stop exceptions that came after the end of the work, so that they don't interrupt the next work.
        # Each exception that was raised in the waiting fiber may have caused one Stop.
        def drop_late_stops
          Thread.handle_interrupt(Stop => :immediate) { Thread.pass }
        rescue Stop
          retry
        end
      end
    end
  end
end
