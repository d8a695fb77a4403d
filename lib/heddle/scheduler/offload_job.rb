# frozen_string_literal: true

module Heddle
  class Scheduler
    class OffloadThreads
      # One piece of work, between the fiber that asks and the thread that runs it.
      class Job
        # Raised in the thread when the fiber wants the work to end. Never seen outside.
        class Stop < Exception; end

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

        # Waits for the work, whatever is raised meanwhile: that comes afterwards.
        def value
          raised = nil
          begin
            outcome = @answer.pop
          rescue Exception => e
            raised = e
            stop
            retry
          ensure
            # A fiber that is killed can't rescue.
            unless outcome
              stop
              @answer.pop
            end
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

        def stop
          @lock.synchronize do
            @stopped = true
            @thread&.raise(Stop)
          end
        end

        # A Stop that came when the work had ended must not strike the next one.
        def drain
          Thread.handle_interrupt(Stop => :immediate) { Thread.pass }
        rescue Stop
          nil
        end
      end
    end
  end
end
