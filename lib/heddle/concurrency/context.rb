# frozen_string_literal: true

require "heddle/concurrency/alarms"

module Heddle
  module Concurrency
    # The state of this layer for one scheduler: its alarms and timers, the root task, the implicit tasks and the scopes
    # of requests. It lives as long as its scheduler.
    class Context
      # @return [Context] the scheduler's
      def self.of(scheduler)
        scheduler.instance_variable_get(:@concurrency) || scheduler.instance_variable_set(:@concurrency, new(scheduler))
      end

      # @return [Alarms]
      attr_reader :alarms

      # @return [Timers]
      def timers = @timers ||= Timers.new(@scheduler)

      # @return [Task, nil] the task of Heddle.run's block, in a loop that Heddle.run has made
      attr_accessor :root

      # @return [Integer] tasks that wait for something from a {Pool}
      attr_accessor :pool_waiting

      # @return [#call, nil] called when one more task waits for something from a pool of another library
      attr_accessor :on_pool_wait

      def initialize(scheduler)
        @scheduler = scheduler
        @alarms = Alarms.new(scheduler)
        @implicit_tasks = {}.compare_by_identity
        @request_scopes = {}.compare_by_identity
        @detached_tasks = @timers = nil
        @pool_waiting = 0
        @root = @raised_signal = @on_pool_wait = nil
        Concurrency.prepare_kill_probe(scheduler) if Fiber.scheduler.equal?(scheduler)
      end

      # The task that runs now; nil in a fiber of `Fiber.schedule` that has no scope open, and on the loop's own fiber.
      def task
        job = @scheduler.current
        job.is_a?(TaskFrame) ? job : @implicit_tasks[@scheduler.current_fiber]
      end

      # The running task. A fiber that is not a task becomes an implicit task while it has a scope open.
      def task!
        task || begin
          fiber = @scheduler.current_fiber or raise NoLoopError, Concurrency.no_loop("a scope")
          @implicit_tasks[fiber] = ImplicitTask.new(self, @scheduler, fiber)
        end
      end

      def forget_implicit(implicit_task)
        @implicit_tasks.delete(implicit_task.fiber)
      end

      # Counts the running fiber as waiting for a pool while the block runs.
      # @return what the block returns
      def wait_for_pool
        @pool_waiting += 1
        @on_pool_wait&.call
        yield
      ensure
        @pool_waiting -= 1
      end

      # The scope of a task that is started here.
      def scope
        current = task
        return current.innermost if current
        return open_request_scope if @scheduler.current.respond_to?(:hosts?)

        @root && !@root.ended? ? @root : detached_tasks
      end

      # Has a request that is being served a scope, for the tasks that it has started? Then every fiber that serves
      # requests must call {end_request_scope} after its request.
      def request_scopes? = !@request_scopes.empty?

      # Ends the scope, if there is one, of the request that the current fiber has served.
      #
      # @param error [Exception, nil] the request's error
      # @return [Exception, nil] the request's error after its scope has ended
      def end_request_scope(error)
        scope = @request_scopes.delete(@scheduler.current_fiber) or return error

        scope.close(error)
        nil
      rescue Exception => e
        e
      end

      # Holds the tasks without a scope: plain fibers have started them outside of Heddle.run.
      def detached_tasks
        @detached_tasks ||= DetachedTasks.new(@scheduler)
      end

      # Raises a signal that was raised in a task in the loop as well, so that the loop stops; a second signal stops it
      # at once. Each scope around the task calls this with the same signal.
      def raise_in_loop(signal)
        return if @raised_signal.equal?(signal) || @scheduler.forked?

        @raised_signal = signal
        @scheduler.spawn(-> { raise signal, cause: signal.cause })
      end

      # Yields the scheduled fibers, except those of this layer.
      def each_fiber
        @scheduler.each_fiber { |fiber, job, state| yield fiber, job, state unless job.equal?(@alarms) }
      end

      # Cancels the tasks and fibers that the root task doesn't wait for.
      def cancel_unawaited
        each_fiber do |fiber, job,|
          @scheduler.interrupt(fiber, Cancelled.new("all other tasks have ended")) unless job.is_a?(TaskFrame)
        end
        @detached_tasks&.children&.each(&:cancel)
      end

      # The fiber's implicit task, if it has a scope open.
      def implicit_task(fiber) = @implicit_tasks[fiber]

      # Opens a scope for the request that the current fiber serves; {end_request_scope} ends it.
      #
      # @param type [Class] of scope
      # @return [Scope]
      def open_request_scope(type = ScopeFrame) = @request_scopes[@scheduler.current_fiber] = type.new(task!).open
    end
  end
end

require "heddle/concurrency/implicit_task"
require "heddle/concurrency/detached_tasks"
