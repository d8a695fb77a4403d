# frozen_string_literal: true

module Heddle
  class Scheduler
    class OffloadThreads
      # One piece of work, between the fiber that asks and the thread that runs it.
      class Job
        # Raised in the thread when the fiber wants the work to end. Internal.
        class Stop < Exception; end

        # Seconds until the second attempt to end the work; the longest pause between two attempts; and how long an
        # attempt blocks this thread.
        AGAIN = 0.02
        SELDOM = 1
        LINGER = 0.0003
        private_constant :AGAIN, :SELDOM, :LINGER

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
            drain
            @answer << answer
          end
        end

        # Waits for the work, and then raises an exception that came meanwhile.
        def value
          raised = nil
          begin
            outcome = raised ? end_work : @answer.pop
          rescue Exception => e
            raised = e
            retry
          ensure
            # A killed fiber runs no rescue.
            end_work unless outcome
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

        # @return [Array] the outcome
        def end_work
          stop
          linger
          pause = AGAIN
          until (outcome = @answer.pop(timeout: pause))
            @lock.synchronize { @thread&.wakeup }
            linger
            pause = [pause * 2, SELDOM].min
          end
          outcome
        end

        # IO.copy_stream of Ruby 3.4 waits without Ruby's lock, and asks *this* thread's scheduler again after each
        # signal. It only leaves the wait when it finds this thread in a fiber with a scheduler, and not in the loop.
        def linger
          return unless @thread # it has not begun

          ending = MonotonicClock.now + LINGER
          nil while MonotonicClock.now < ending
        end

        def stop
          @lock.synchronize do
            @stopped = true
            @thread&.raise(Stop)
          end
        end

        # A Stop that came after the end of the work must not be raised in the next one.
        def drain
          Thread.handle_interrupt(Stop => :immediate) { Thread.pass }
        rescue Stop
          nil
        end
      end
    end
  end
end
