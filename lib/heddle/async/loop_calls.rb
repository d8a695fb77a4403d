# frozen_string_literal: true

require "heddle/async/root"
require "heddle/async/timeouts"

module Heddle
  module Async
    # The methods of a scheduler that the gem async calls. They are added to Heddle's scheduler.
    module LoopCalls
      include Timeouts

      # @return [Root] the root of async's tree in this loop
      def async_root = @async_root ||= Root.new(self)

      # @api private
      attr_writer :async_root

      # @api private
      # Called by tasks that were made before this module was loaded, because their parent is the scheduler.
      def add_child(node) = async_root.send(:add_child, node)

      # (see Root#async)
      def async(...) = async_root.async(...)

      # @return [Async::Children, nil]
      def children = async_root.children

      def print_hierarchy(...) = async_root.print_hierarchy(...)

      # (see Root#load)
      def load = async_root.load

      # Implements `Fiber.schedule`. Inside an async task it starts a child of that task, as the servers of async
      # expect.
      # @return [Fiber]
      def fiber(*arguments, **options, &block)
        return super(&block) unless ::Async::Task.current?

        job = nil
        async(*arguments, **options) do
          job = Fiber.current
          block.call
        end
        job
      end

      # @param seconds [Numeric, nil] nil: until the fiber is cancelled
      def sleep(...) = Kernel.sleep(...)

      # Waits until another fiber passes this one to {#resume} or {#push}. The wait may also end for another reason, so
      # the caller must check its condition.
      def transfer = park

      # Makes a fiber ready to run. For any other object, calls its method `transfer` in a later tick.
      #
      # @param object [Fiber, #transfer, #alive?]
      def push(object)
        return unpark(object) if object.is_a?(Fiber)

        spawn(-> { object.transfer if object.alive? })
        nil
      end

      # Resumes a waiting fiber now; the caller continues later.
      #
      # @param fiber [Fiber] a fiber of this loop, or one that has not begun
      def resume(fiber, *)
        return start(-> { fiber.resume }) if fiber.alive? && fiber.backtrace == []

        unpark(fiber)
        give_turn
      end

      # Raises an exception in a waiting fiber of this loop; the caller continues later. Without a fiber, the same as
      # Kernel#raise.
      #
      # @raise [FiberError] if the fiber has ended or belongs to another loop
      def raise(fiber = nil, *arguments, **options)
        return Kernel.raise(*[fiber, *arguments].compact, **options) unless fiber.is_a?(Fiber)

        error = exception_of(*arguments, **options)
        Kernel.raise FiberError, "the fiber has ended, or belongs to another loop" unless interrupt(fiber, error)

        give_turn
      end

      # With arguments, this is Heddle's own method. async calls it without arguments to make the loop check for events;
      # Heddle's loop does that anyway.
      def interrupt(*arguments) = arguments.empty? ? nil : super

      # @api private
      # Runs the block. If it resumes or cancels other fibers, they run later: the calling fiber does not yield to them,
      # because it may not be able to wait.
      def without_switch
        before = @stays
        @stays = true
        yield
      ensure
        @stays = before
      end

      # @api private
      # A forked child begins without the parent's tasks.
      def process_fork = @async_root = nil

      private

      def give_turn
        self.yield unless @stays || (running? && current_fiber.nil?)
      end

      def exception_of(klass = RuntimeError, *arguments, cause: nil, **)
        error = klass.exception(*arguments.first(1))
        cause ? with_cause(error, cause) : error
      end

      # Only `raise` can set an exception's cause. Removes the backtrace of this `raise`, so that the exception gets the
      # backtrace of the fiber in which it is raised.
      def with_cause(error, cause)
        traced = error.backtrace
        Kernel.raise error, cause:
      rescue Exception
        error.set_backtrace(nil) unless traced
        error
      end
    end
  end
end
