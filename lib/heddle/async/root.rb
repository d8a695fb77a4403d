# frozen_string_literal: true

require "heddle/async/load"

module Heddle
  module Async
    # The root of async's tree of tasks in one of Heddle's loops; `Async::Task#reactor` returns it there. To programs it
    # is a reactor. It uses only the part of a reactor's code that is about the tree.
    class Root < ::Async::Reactor
      # @return [Scheduler]
      attr_reader :scheduler

      # @param scheduler [Scheduler]
      def initialize(scheduler) # rubocop:disable Lint/MissingSuper -- which would open a selector
        ::Async::Node.instance_method(:initialize).bind_call(self)
        @scheduler = scheduler
        @load = Load.new(scheduler)
        @implicit_tasks = []
        @sweep_at = 32
      end

      # Starts a task: a child of the task that runs, or else of this root.
      # @return [Async::Task]
      def async(*arguments, **options, &block)
        ::Async::Task.new(::Async::Task.current? || self, **options, &block).tap { |task| task.run(*arguments) }
      end

      # Starts a task. Does not wait for the task, because the loop runs already.
      # @return [Async::Task, nil]
      def run(...) = block_given? ? async(...) : nil

      # Cancels every task of this loop that async knows, transient ones too.
      def cancel(later = false, cause: $!) # rubocop:disable Style/OptionalBooleanParameter, Style/SpecialGlobalVars
        return unless children?

        cause = ::Async::Cancel::Cause.for("Cancelling task!") unless cause.is_a?(Exception)
        children.each { |child| child.cancel(later, cause:) }
      end

      def stop(...) = cancel(...)

      # @return [Float] the share of the last second in which the loop did not sleep: 0.0 to 1.0
      def load = @load.value

      def closed? = @scheduler.closed?

      # Lets the other ready fibers run.
      def run_once(*)
        @scheduler.yield
        true
      end

      # @raise [ThreadError] always: the loop ends with the code that has started it
      def close
        Kernel.raise ThreadError, "Heddle's loop can't be closed here: it ends when its Heddle.run or its server ends"
      end
      alias scheduler_close close

      # Has no effect here: the loop checks for events by itself.
      def interrupt = nil

      def to_s
        "#<Async::Reactor on Heddle, #{children&.size || 0} children (#{children? ? "running" : "cancelled"})>"
      end
      alias inspect to_s

      def sleep(...) = Kernel.sleep(...)

      %i[transfer yield push resume raise with_timeout block unblock kernel_sleep].each do |name|
        define_method(name) do |*arguments, **options, &block|
          @scheduler.public_send(name, *arguments, **options, &block)
        end
      end

      # Keeps an implicit task until its fiber has ended, or serves something else.
      #
      # @param implicit_task [ImplicitTask]
      # @return [ImplicitTask]
      def keep(implicit_task)
        sweep if @implicit_tasks.size >= @sweep_at
        @implicit_tasks << implicit_task
        implicit_task
      end

      private

      def sweep
        over, @implicit_tasks = @implicit_tasks.partition(&:over?)
        over.each(&:depart)
        @sweep_at = [32, @implicit_tasks.size * 2].max
      end
    end
  end
end
