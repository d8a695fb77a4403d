# frozen_string_literal: true

require "heddle/async/root"
require "heddle/async/timeouts"

module Heddle
  module Async
    # The methods that async's classes call on `Fiber.scheduler`, for Heddle's scheduler.
    module LoopCalls
      include Timeouts

      # @return [Root] of async's tree in this loop
      def async_root = @async_root ||= Root.new(self)

      # @api private
      attr_writer :async_root

      # @api private
      # A task that was made before this module was loaded has the scheduler as its parent, so the scheduler acts as a
      # parent, too.
      def add_child(node) = async_root.send(:add_child, node)

      # (see Root#async)
      def async(...) = async_root.async(...)

      # @return [Async::Children, nil]
      def children = async_root.children

      def print_hierarchy(...) = async_root.print_hierarchy(...)

      # (see Root#load)
      def load = async_root.load

      # `Fiber.schedule`: inside an async task it starts a child of that task, as async's servers expect.
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

      # @param seconds [Numeric, nil] nil: until it is cancelled
      def sleep(...) = Kernel.sleep(...)

      # Waits until {#resume}. The wait may end for another reason, so the caller must check its condition.
      def transfer = park

      # Makes a fiber ready, or calls `transfer` of another object in a later tick.
      #
      # @param object [Fiber, #transfer, #alive?]
      def push(object)
        return unpark(object) if object.is_a?(Fiber)

        spawn(-> { object.transfer if object.alive? })
        nil
      end

      # Lets a fiber that waits continue now; the caller continues after it.
      #
      # @param fiber [Fiber] one of this loop, or one that has not begun
      def resume(fiber, *)
        return start(-> { fiber.resume }) if fiber.alive? && fiber.backtrace == []

        unpark(fiber)
        give_turn
      end

      # Raises in a fiber of this loop, at its wait; then the caller continues. Without a fiber it is Kernel#raise.
      #
      # @raise [FiberError] when that fiber has ended or belongs to another loop
      def raise(fiber = nil, *arguments, **options)
        return Kernel.raise(*[fiber, *arguments].compact, **options) unless fiber.is_a?(Fiber)

        error = exception_of(*arguments, **options)
        Kernel.raise FiberError, "the fiber has ended, or belongs to another loop" unless interrupt(fiber, error)

        give_turn
      end

      # Two methods have this name. The one of async, without arguments, asks the loop to check for events, which the
      # loop does anyway.
      def interrupt(*arguments) = arguments.empty? ? nil : super

      # @api private
      # Tasks that the block cancels continue later, and the caller continues at once, because it may not be able to
      # wait.
      def without_switch
        before = @stays
        @stays = true
        yield
      ensure
        @stays = before
      end

      # @api private
      # In a forked child the parent's tasks do not exist.
      def process_fork = @async_root = nil

      private

      def give_turn
        self.yield unless @stays || (running? && current_fiber.nil?)
      end

      def exception_of(klass = RuntimeError, *arguments, cause: nil, **)
        error = klass.exception(*arguments.first(1))
        cause ? with_cause(error, cause) : error
      end

      # Only `raise` sets an exception's cause. The backtrace is from the fiber in which it is raised.
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
