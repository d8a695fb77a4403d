# frozen_string_literal: true

module Heddle
  module Concurrency
    # Represents a fiber that is not a task: a fiber of `Fiber.schedule`, or one that serves requests. It exists while
    # the fiber has a scope or time limit open, so that these work in every fiber.
    class ImplicitTask < TaskFrame
      def initialize(context, scheduler, fiber)
        super(nil, scheduler, nil, nil)
        @context = context
        @fiber = fiber
        @state = :running
      end

      # When the last frame has ended, the fiber is a plain fiber again.
      def innermost=(frame)
        super
        @context.forget_implicit(self) if frame.equal?(self)
      end

      def name = "fiber #{@fiber.object_id}"
    end
  end
end
