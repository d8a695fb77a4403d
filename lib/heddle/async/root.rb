# frozen_string_literal: true

require "heddle/async/load"

module Heddle
  module Async
    # The root of async's tree of tasks in one loop of Heddle's: what `Async::Task#reactor` returns there.
    class Root < ::Async::Node
      # @return [Scheduler]
      attr_reader :scheduler

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        super(nil, annotation: "Heddle")
        @scheduler = scheduler
        @load = Load.new
        @guests = []
        @sweep_at = 32
      end

      # Starts a task: a child of the task that runs, or else of this root.
      # @return [Async::Task]
      def async(*arguments, **options, &block)
        ::Async::Task.new(::Async::Task.current? || self, **options, &block).tap { |task| task.run(*arguments) }
      end

      # Starts a task. The loop runs already, so this does not wait for it.
      # @return [Async::Task, nil]
      def run(...) = block_given? ? async(...) : nil

      # Cancels every task of this loop that async knows, transient ones too.
      def cancel(later = false, cause: $!) # rubocop:disable Style/OptionalBooleanParameter, Style/SpecialGlobalVars
        return unless children?

        cause = ::Async::Cancel::Cause.for("Cancelling task!") unless cause.is_a?(Exception)
        children.each { |child| child.cancel(later, cause:) }
      end

      def stop(...) = cancel(...)

      # @return [Float] which part of the last second the loop's thread has computed: 0.0 to 1.0
      def load = @load.value

      def closed? = @scheduler.closed?

      def sleep(...) = Kernel.sleep(...)

      %i[transfer yield push resume raise with_timeout block unblock kernel_sleep].each do |name|
        define_method(name) do |*arguments, **options, &block|
          @scheduler.public_send(name, *arguments, **options, &block)
        end
      end

      # Keeps a guest until its fiber has ended, or serves something else.
      #
      # @param guest [Guest]
      # @return [Guest]
      def keep(guest)
        sweep if @guests.size >= @sweep_at
        @guests << guest
        guest
      end

      private

      def sweep
        over, @guests = @guests.partition(&:over?)
        over.each(&:depart)
        @sweep_at = [32, @guests.size * 2].max
      end
    end
  end
end
