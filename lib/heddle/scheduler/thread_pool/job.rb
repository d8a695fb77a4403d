# frozen_string_literal: true

module Heddle
  class Scheduler
    class ThreadPool
      # A piece of work that a thread runs for a fiber.
      class Job
        # Raised in the thread when the fiber wants the work to end. Internal.
        class Stop < Exception; end

        # Seconds between the first attempt to end the work and the second. Each further pause is twice as long.
        FIRST_PAUSE = 0.02
        LONGEST_PAUSE = 1
        # The part of the pause after it for which an attempt blocks the thread of the fiber: on a busy machine short
        # attempts fail.
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
            @lock.synchronize { @thread = nil } # from here on no thread raises Stop
            drop_late_stops
            @answer << answer
          end
        end

        # Waits for the work. Then raises the exception that was raised in the fiber meanwhile, if any.
        def value
          raised = nil
          begin
            outcome = raised ? end_work { |pause| @answer.pop(timeout: pause) } : @answer.pop
          rescue Exception => e
            raised = e
            retry
          ensure
            # A killed fiber runs no rescue, and the next switch back to it would end this wait, too.
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

        # Keeps this thread in the fiber for a moment, so that IO.copy_stream can leave its wait (Ruby 3.4). It waits
        # without Ruby's lock, and asks *this* thread's scheduler again after each signal. Ruby finds that scheduler,
        # and the wait ends, only while the thread runs a fiber, not while it runs the loop.
        def linger(pause)
          return unless @thread # it has not begun

          ending = MonotonicClock.now + (pause * LINGER)
          nil while MonotonicClock.now < ending
        end

        def stop
          locked do
            @stopped = true
            @thread&.raise(Stop)
          end
        end

        # The thread has the lock for moments only, and a killed fiber can't wait for it by a switch.
        def locked(&) = Fiber.blocking { @lock.synchronize(&) }

        # Those that came after the end of the work must not be raised in the next work. Each further exception in the
        # fiber has led to one.
        def drop_late_stops
          Thread.handle_interrupt(Stop => :immediate) { Thread.pass }
        rescue Stop
          retry
        end
      end
    end
  end
end
