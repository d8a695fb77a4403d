# frozen_string_literal: true

require "heddle/async"

module Heddle
  module Async
    # Heddle's loop with the interface of async's reactor, for programs without Heddle.run. After this file is required,
    # `Async { }`, `Sync { }` and `Async::Reactor.new` use it in each thread that has no loop.
    class Reactor < Root
      # Makes `Async::Reactor.new`, and so `Async { }` in a thread without a loop, use this class.
      module Replacement
        # @raise [ThreadError] if the thread already has a loop of Heddle
        def new(...) = equal?(::Async::Reactor) ? Reactor.new(...) : super
      end

      # @param _parent [nil] not used; async's own reactor has this parameter, too
      # @param selector [Symbol, nil] see {Scheduler#initialize}; a selector of the gem io-event is ignored
      # @raise [ThreadError] if the thread already has a loop of Heddle
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

      # Runs the loop until all tasks except transient ones have ended, and then cancels the transient ones. Returns
      # earlier, without cancelling them, if {interrupt} is called.
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

      # Waits until an event occurs, and runs the fibers that are ready. Returns earlier if {interrupt} is called.
      #
      # @param timeout [Numeric, nil] maximum seconds to wait; nil: no maximum
      # @return [Boolean] false: no task was left, and the loop did not run
      def run_once(timeout = nil)
        cancel if finished?
        return false unless children?

        @waiting = Fiber.current
        @scheduler.park(timeout, true)
        @scheduler.yield
        true
      ensure
        @waiting = nil
      end

      # Makes {run} or {run_once} return. Any thread may call it.
      def interrupt
        @interrupted = true
        wake
      end

      # Ends all tasks, and the loop.
      def close = @scheduler.scheduler_close
      alias scheduler_close close

      # Was this signal already raised? The task raises it first, and then the task's scope raises it again.
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

      # Runs the loop until the block returns true or {interrupt} is called. Ctrl-C cancels all tasks, and is raised
      # again when they have ended. While `start` runs, Ctrl-C and other signals are deferred.
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

      # Prepended to the class of Heddle's tasks. Ends the implicit task that represents the task in async's tree,
      # because a reactor runs until all tasks of that tree have ended.
      module TaskEnd
        private

        def settle
          fiber = @fiber
          super
          ImplicitTask.end_with(fiber)
        end
      end

      # Extends the scheduler of a reactor, so that closing it cancels the tasks instead of waiting for them.
      module Closing
        # Does for the fibers of `Fiber.schedule` what {TaskEnd} does for tasks.
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
