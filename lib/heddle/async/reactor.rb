# frozen_string_literal: true

require "heddle/async"

module Heddle
  module Async
    # Heddle's loop with the interface of async's reactor, for programs that have no Heddle.run. `Async { }`, `Sync { }`
    # and `Async::Reactor.new` use it, in any thread, once this file has been required.
    class Reactor < Root
      # Makes `Async::Reactor.new`, and so `Async { }` in a thread without a loop, use this class.
      module Replacement
        # @raise [ThreadError] where Heddle's loop runs
        def new(...) = equal?(::Async::Reactor) ? Reactor.new(...) : super
      end

      # @param parent [nil] as in async
      # @param selector [Symbol, nil] see {Scheduler#initialize}; a selector of the gem io-event is ignored
      # @raise [ThreadError] where a loop runs
      def initialize(_parent = nil, selector: nil, **)
        Async.refuse_reactor
        scheduler = Scheduler.new(selector: (selector if selector.is_a?(Symbol)))
        super(scheduler)
        @waiting = @signal = nil
        @interrupted = false
        scheduler.async_root = self
        scheduler.extend(Closing)
        Fiber.set_scheduler(scheduler)
      end

      # Runs the loop until every task but the transient ones has ended, and then ends those.
      #
      # @return [Async::Task, nil] the block's task
      # @raise [Async::Scheduler::ClosedError]
      def run(...)
        raise ::Async::Scheduler::ClosedError if closed?

        task = nil
        start = -> { task = async(...) } if block_given?
        run_until(start) { finished? }
        end_children unless @interrupted
        @interrupted = false
        task
      end

      # Runs the loop for one tick, at most until the time is up.
      #
      # @param timeout [Numeric, nil] seconds
      # @return [Boolean] is any task left?
      def run_once(timeout = nil)
        cancel if finished?
        return false unless children?

        @scheduler.park(timeout || 0)
        true
      end

      # Makes {run} return. From any thread.
      def interrupt
        @interrupted = true
        wake
      end

      # Ends all tasks, and the loop.
      def close = @scheduler.scheduler_close
      alias scheduler_close close

      # Was this signal raised before? The task raises it, and then the task's scope.
      #
      # @api private
      def raised?(signal) = @signal.equal?(signal)

      # @api private
      def close_tasks
        end_children unless closed? || @scheduler.running?
      end

      # @api private
      def remove_child(child)
        super
        wake if @waiting && finished?
      end

      private

      def wake
        waiting = @waiting
        @scheduler.unpark(waiting) if waiting
      end

      def end_children
        cancel
        run_until { !children? }
      end

      # Ctrl-C cancels all tasks, and is raised again when they have ended. It is not raised while tasks are started.
      def run_until(start = nil)
        interrupt = nil
        @waiting = Fiber.current
        begin
          first, start = start, nil
          Thread.handle_interrupt(SignalException => :never) { first.call } if first
          @scheduler.park until @interrupted || yield
        rescue SignalException => e
          retry if raised?(e)
          @signal = e
          raise unless e.is_a?(Interrupt)

          interrupt = e
          cancel
          retry
        end
        raise interrupt if interrupt
      ensure
        @waiting = nil
      end

      # Prepended to Heddle's tasks, so that each ends its implicit task in async's tree: a reactor runs until all tasks
      # of that tree have ended.
      module TaskEnd
        private

        def settle
          fiber = @fiber
          super
          ImplicitTask.end_with(fiber)
        end
      end

      # For the scheduler of a reactor: closing it cancels its tasks instead of waiting for them.
      module Closing
        # Does the same as {TaskEnd} for the fibers of `Fiber.schedule`.
        def fiber(*, **, &block)
          super do
            block.call
          ensure
            ImplicitTask.end_with(Fiber.current)
          end
        end

        def scheduler_close
          async_root.close_tasks
          super
        rescue SignalException => e
          retry if async_root.raised?(e)
          raise
        end
        alias close scheduler_close
      end
      private_constant :Closing, :TaskEnd

      Concurrency::TaskFrame.prepend(TaskEnd)
      ::Async::Reactor.singleton_class.prepend(Replacement)
    end
  end
end
