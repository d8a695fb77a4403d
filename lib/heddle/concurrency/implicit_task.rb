# frozen_string_literal: true

module Heddle
  module Concurrency
    # Stands for a fiber that is not a task (one of `Fiber.schedule`, or a runner of the server) as long as it has a
    # scope or a time limit open, so that scopes and time limits work in such fibers, too.
    class ImplicitTask < TaskFrame
      def initialize(context, scheduler, fiber)
        super(nil, scheduler, nil, nil)
        @context = context
        @fiber = fiber
        @state = :running
      end

      # When the last frame is left, the fiber is a plain fiber again.
      def innermost=(frame)
        super
        @context.forget_implicit(self) if frame.equal?(self)
      end

      def name = "fiber #{@fiber.object_id}"
    end
  end
end
