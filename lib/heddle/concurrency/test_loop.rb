# frozen_string_literal: true

require "heddle/runtime"

module Heddle
  module Concurrency
    # Runs one test in a loop, for {Heddle::Minitest} and {Heddle::RSpec}. Sets a time limit, and checks at the end that
    # no fiber and no task still runs. Only background tasks may still run; they are cancelled.
    class TestLoop
      # Seconds that a test may take by default.
      TIME_LIMIT = 10

      # Raised when tasks or fibers of a test still run after its end.
      class LeakError < OwnError; end

      # @param name [String] the test's name in the task tree
      # @param time_limit [Numeric] seconds
      def initialize(name, time_limit)
        @name = name
        @time_limit = time_limit
        @leak = nil
        @expired = false
      end

      # Runs the block in a loop. The block must rescue the errors of the test itself.
      #
      # @return [Exception, nil] a failure that the block does not handle: a failed task, a leak, or the time limit
      def run(&)
        Heddle.run(name: @name) { watch(&) }
        raise TimeoutError, "the test did not end within #{@time_limit} s" if @expired
        raise LeakError, @leak if @leak
      rescue StandardError => e
        e
      end

      private

      def watch
        Heddle.timeout(@time_limit) do |scope|
          yield
          @expired = scope.cancelled?
          look_for_leaks(scope) unless @expired
        end
      end

      def look_for_leaks(scope)
        context = Context.of(Fiber.scheduler)
        return if !unawaited?(context) && scope.children.all?(&:background?)

        @leak = "the test has ended, but tasks or fibers that it started still run; wait for them or cancel " \
                "them:\n#{TaskTree.new(context, lines: 3)}"
        context.cancel_unawaited
        scope.cancel
      end

      # Is there a fiber that the scope does not wait for? This is a fiber that is not a task, or a detached task.
      def unawaited?(context)
        context.each_fiber { |_fiber, job,| return true unless job.is_a?(TaskFrame) }
        context.detached_tasks.children.any?
      end
    end
  end
end
