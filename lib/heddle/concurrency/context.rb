# frozen_string_literal: true

require "heddle/concurrency/alarms"

module Heddle
  module Concurrency
    # The state of the concurrency layer for one scheduler: alarms and timers, the root task, the implicit tasks, and
    # the scopes of requests. An implicit task stands for a fiber that is not a task, such as one that serves requests.
    class Context
      # @return [Context] the scheduler's context, made at the first call
      def self.of(scheduler)
        scheduler.instance_variable_get(:@concurrency) || scheduler.instance_variable_set(:@concurrency, new(scheduler))
      end

      # @return [Alarms]
      attr_reader :alarms

      # @return [Timers]
      def timers = @timers ||= Timers.new(@scheduler)

      # @return [ThreadCalls, nil] runs blocks of other threads in the loop; nil without a root task
      def thread_calls = @thread_calls ||= @root && ThreadCalls.new(@root)

      # @return [Task, nil] the task of Heddle.run's block; nil if the loop was not started by Heddle.run
      attr_accessor :root

      # @return [Integer] number of tasks that wait for a resource of a {Pool} or of another library's pool
      attr_accessor :pool_waiting

      # @return [#call, nil] called when a task begins to wait for a pool of another library
      attr_accessor :on_pool_wait

      def initialize(scheduler)
        @scheduler = scheduler
        @alarms = Alarms.new(scheduler)
        @implicit_tasks = {}.compare_by_identity
        @request_scopes = {}.compare_by_identity
        @detached_tasks = @timers = @thread_calls = nil
        @pool_waiting = 0
        @root = @raised_signal = @on_pool_wait = nil
        Concurrency.prepare_kill_probe(scheduler) if Fiber.scheduler.equal?(scheduler)
      end

      # The running task. nil on the loop's own fiber, and in a fiber that is not a task and has no scope open.
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

      # The scope in which the running code starts tasks if it names no other.
      def scope
        current = task
        return current.innermost if current
        return open_request_scope if @scheduler.current.respond_to?(:hosts?)

        @root && !@root.ended? ? @root : detached_tasks
      end

      # Does any running request have a scope, because it has started tasks? If so, every fiber that serves requests
      # must call {end_request_scope} after its request.
      def request_scopes? = !@request_scopes.empty?

      # Ends the scope of the request that the current fiber has served. Does nothing if the request has no scope.
      #
      # @param error [Exception, nil] the error that the request has raised
      # @return [Exception, nil] the error with which the request, or a task of its scope, has failed
      def end_request_scope(error)
        scope = @request_scopes.delete(@scheduler.current_fiber) or return error

        scope.close(error)
        nil
      rescue Exception => e
        e
      end

      # The scope of tasks that fibers have started outside of all tasks: in a loop without Heddle.run, or when the root
      # task has ended.
      def detached_tasks
        @detached_tasks ||= DetachedTasks.new(@scheduler)
      end

      # Raises a SignalException in the loop, too, after a task has raised it, so that the loop stops. Each scope around
      # the task calls this method with the same signal; only the first call has an effect.
      def raise_in_loop(signal)
        return if @raised_signal.equal?(signal) || @scheduler.forked?

        @raised_signal = signal
        @scheduler.spawn(-> { raise signal, cause: signal.cause })
      end

      # Yields each scheduled fiber with its job and state, except the fiber of {Alarms}.
      def each_fiber
        @scheduler.each_fiber { |fiber, job, state| yield fiber, job, state unless job.equal?(@alarms) }
      end

      # Cancels the detached tasks, and the fibers that are not tasks: the root task does not wait for them.
      def cancel_unawaited
        each_fiber do |fiber, job,|
          @scheduler.interrupt(fiber, Cancelled.new("no task waits for this fiber")) unless job.is_a?(TaskFrame)
        end
        @detached_tasks&.cancel
      end

      # The fiber's implicit task, if it has a scope open.
      def implicit_task(fiber) = @implicit_tasks[fiber]

      # Opens a scope for the request that the current fiber serves; {end_request_scope} ends it.
      #
      # @param type [Class] the class of the scope
      # @return [Scope]
      def open_request_scope(type = ScopeFrame) = @request_scopes[@scheduler.current_fiber] = type.new(task!).open
    end
  end
end

require "heddle/concurrency/implicit_task"
require "heddle/concurrency/detached_tasks"
