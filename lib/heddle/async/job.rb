# frozen_string_literal: true

module Heddle
  module Async
    # The Heddle task in which a task of the gem async runs. It belongs to the Heddle scope (of a request, Heddle.run or
    # Heddle.scope) in which the async task, or the outermost async task around it, was started. So that scope waits for
    # it and cancels it. The jobs of one scope are siblings, even if one async task has started another.
    class Job < Concurrency::TaskFrame
      class << self
        # Runs the work in a new fiber at once, until its first wait.
        #
        # @param task [Async::Task]
        # @param block [Proc, nil] the task's block, for the name in the task tree
        # @param work [Proc] the fiber's code; rescues every StandardError
        # @return [Job]
        def start(task, scheduler, block, work)
          context = Concurrency::Context.of(scheduler)
          background = task.transient?
          scope = background ? loop_scope(context) : scope_of(task.parent, context)
          new(task, scope, scheduler, block, work).begin_in(scope, background)
        end

        private

        # Transient tasks belong to the root task, which cancels them when only background tasks are left. If no root
        # task runs, as in a loop that was not started by Heddle.run, they belong to the detached tasks.
        def loop_scope(context)
          root = context.root
          root && !root.ended? ? root : context.detached_tasks
        end

        def scope_of(parent, context)
          current = context.task
          around = parent.job if parent.is_a?(::Async::Task)
          around = current if around.nil? && current.is_a?(Job)
          return context.scope if around.nil?

          scope = around.equal?(current) && !current.innermost.equal?(current) ? current.innermost : around.parent
          scope.ended? ? loop_scope(context) : scope
        end
      end

      # @return [Async::Task]
      attr_reader :async_task

      # @api private
      def initialize(async_task, scope, scheduler, block, work)
        super(scope, scheduler, nil, work)
        @async_task = async_task
        @named_by = block
      end

      # @api private
      def begin_in(scope, background)
        scope.adopt(self, background)
        @fiber = @scheduler.start(self)
        @fiber = nil if ended?
        self
      rescue Exception # no memory for the fiber's stack
        scope.disown(self)
        raise
      end

      # @api private
      def call
        @fiber = Fiber.current
        super
      end

      # @return [String] the annotation of the async task, or file and line of its block
      def name = @async_task.annotation || Concurrency.place(@named_by)

      # Raises Async::Cancel in the fiber, unless the async task defers it. Called when the scope is cancelled, and
      # then after each {#grace} seconds until the task has ended.
      #
      # @api private
      def interrupt
        alarms = Concurrency::Context.of(@scheduler).alarms
        alarms.remove(@grace_alarm) if @grace_alarm
        @grace_alarm = alarms.add(grace, self, :interrupt)
        @scheduler.without_switch { @async_task.cancel(true) }
      end

      # The job of the parent in async's tree.
      #
      # @api private
      def shown_below
        parent = @async_task.parent
        parent.job if parent.is_a?(::Async::Task)
      end

      # @return [Array<TaskFrame>] the tasks of Heddle and of async that this task has started
      def children
        found = super
        @async_task.children&.each { |node| found << node.job if node.is_a?(::Async::Task) && node.job }
        found
      end
    end
  end
end
