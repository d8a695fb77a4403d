# frozen_string_literal: true

module Heddle
  module Async
    # Stands in async's tree for a fiber that async has not started (a request, a Heddle.async task, a Fiber.schedule)
    # and that asks for `Async::Task.current`. It runs nothing itself.
    class ImplicitTask < ::Async::Task
      # @param root [Root]
      # @param fiber [Fiber] a scheduled fiber of this loop
      # @return [ImplicitTask]
      def self.of(root, fiber) = fiber.async_task || root.keep(new(root, fiber))

      # Must be called when a fiber ends: ends the fiber's implicit task, if it has one.
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

      # Has its fiber ended, or begun to serve another request?
      def over? = @fiber.nil? || !@fiber.alive? || !@fiber.async_task.equal?(self)

      # Leaves the tree; its children stay in it. Idempotent.
      def depart
        return if @fiber.nil?

        @fiber = nil # which may have another task by now
        completed!(nil)
        finish!
      end
    end
  end
end
