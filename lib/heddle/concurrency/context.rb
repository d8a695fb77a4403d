# frozen_string_literal: true

require "heddle/concurrency/alarms"

module Heddle
  module Concurrency
    # The state of this layer for one scheduler: its clock and timers, the root task and the implicit tasks. It lives as
    # long as its scheduler.
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
        @hosted = {}.compare_by_identity
        @detached_tasks = @timers = nil
        @pool_waiting = 0
        @root = @passed_on = @on_pool_wait = nil
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
        return host if @scheduler.current.respond_to?(:hosts?)

        @root && !@root.ended? ? @root : detached_tasks
      end

      # Has any fiber that serves requests started a task in one? Then each must call {leave} after its request.
      def hosting? = !@hosted.empty?

      # Ends the scope, if there is one, of the request that the current fiber has served.
      #
      # @param error [Exception, nil] the request's error
      # @return [Exception, nil] its error after the scope has ended
      def leave(error)
        scope = @hosted.delete(@scheduler.current_fiber) or return error

        scope.close(error)
        nil
      rescue Exception => e
        e
      end

      # Holds the tasks without a scope: plain fibers have started them outside of Heddle.run.
      def detached_tasks
        @detached_tasks ||= DetachedTasks.new(@scheduler)
      end

      # Also raises in the loop a signal that was raised in a task, so that the loop stops; a second signal stops it at
      # once. Each signal is raised there only once, although every scope on its way up raises it.
      def pass_on(signal)
        return if @passed_on.equal?(signal) || @scheduler.forked?

        @passed_on = signal
        @scheduler.spawn(-> { raise signal, cause: signal.cause })
      end

      # Yields the scheduled fibers, except those of this layer.
      def each_fiber
        @scheduler.each_fiber { |fiber, job, state| yield fiber, job, state unless job.equal?(@alarms) }
      end

      # Cancels the tasks and fibers that the root task doesn't wait for.
      def cancel_strangers
        each_fiber do |fiber, job,|
          @scheduler.interrupt(fiber, Cancelled.new("all other tasks have ended")) unless job.is_a?(TaskFrame)
        end
        @detached_tasks&.children&.each(&:cancel)
      end

      # The fiber's implicit task, if it has a scope open.
      def implicit_task(fiber) = @implicit_tasks[fiber]

      # Opens a scope for the request that the current fiber serves; {leave} ends it.
      #
      # @param type [Class] of scope
      # @return [Scope]
      def host(type = ScopeFrame) = @hosted[@scheduler.current_fiber] = type.new(task!).open
    end
  end
end

require "heddle/concurrency/implicit_task"
require "heddle/concurrency/detached_tasks"
