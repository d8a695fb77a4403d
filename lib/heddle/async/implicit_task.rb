# frozen_string_literal: true

module Heddle
  module Async
    # Represents, in async's tree, a fiber that async has not started (that of a request, of Heddle.async or of
    # Fiber.schedule). Made when the fiber calls `Async::Task.current`. It runs nothing itself.
    class ImplicitTask < ::Async::Task
      # @param root [Root]
      # @param fiber [Fiber] a scheduled fiber of this loop
      # @return [ImplicitTask]
      def self.of(root, fiber) = fiber.async_task || root.keep(new(root, fiber))

      # Ends the fiber's implicit task, if it has one. Must be called when the fiber ends.
      #
      # @param fiber [Fiber, nil]
      # @return [void]
      def self.end_with(fiber)
        task = fiber&.async_task
        return unless task.is_a?(self)

        fiber.async_task = nil
        task.depart
      end

      def initialize(root, fiber)
        super(root)
        @fiber = fiber
        fiber.async_task = self
      end

      # Has the task's fiber ended, or begun to serve another request?
      def over? = @fiber.nil? || !@fiber.alive? || !@fiber.async_task.equal?(self)

      # Removes the task from the tree; its children remain. Idempotent.
      def depart
        return if @fiber.nil?

        @fiber = nil # the fiber may already have another task
        completed!(nil)
        finish!
      end
    end
  end
end
