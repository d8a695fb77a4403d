# frozen_string_literal: true

require "heddle/async/load"

module Heddle
  module Async
    # The root of async's tree of tasks in a loop of Heddle. `Async::Task#reactor` returns it, so it is a subclass of
    # async's reactor. From that class it uses only the code for the tree; the loop is Heddle's.
    class Root < ::Async::Reactor
      # @return [Scheduler]
      attr_reader :scheduler

      # @param scheduler [Scheduler]
      def initialize(scheduler) # rubocop:disable Lint/MissingSuper -- it would open a selector
        ::Async::Node.instance_method(:initialize).bind_call(self)
        @scheduler = scheduler
        @load = Load.new(scheduler)
        @implicit_tasks = []
        @sweep_at = 32
      end

      # Starts a task as a child of the running task, or of this root if no task runs.
      # @return [Async::Task]
      def async(*arguments, **options, &block)
        ::Async::Task.new(::Async::Task.current? || self, **options, &block).tap { |task| task.run(*arguments) }
      end

      # Starts a task. Unlike a reactor's `run`, it does not wait for the task, because the loop already runs.
      # @return [Async::Task, nil]
      def run(...) = block_given? ? async(...) : nil

      # Cancels all async tasks of this loop, including transient ones.
      def cancel(later = false, cause: $!) # rubocop:disable Style/OptionalBooleanParameter, Style/SpecialGlobalVars
        return unless children?

        cause = ::Async::Cancel::Cause.for("Cancelling task!") unless cause.is_a?(Exception)
        children.each { |child| child.cancel(later, cause:) }
      end

      def stop(...) = cancel(...)

      # @return [Float] how busy the loop is, from 0.0 to 1.0: see {Load}
      def load = @load.value

      def closed? = @scheduler.closed?

      # Lets the other ready fibers run.
      def run_once(*)
        @scheduler.yield
        true
      end

      # @raise [ThreadError] always, because only the code that has started the loop may end it
      def close
        Kernel.raise ThreadError, "Heddle's loop can't be closed here: it ends with its Heddle.run or its server"
      end
      alias scheduler_close close

      # Has no effect, because Heddle's loop checks for events by itself.
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

      # Registers an implicit task. It is removed after its fiber has ended or serves another request.
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
