# frozen_string_literal: true

module Heddle
  module Async
    # In a thread where Heddle's loop runs, a reactor of async's own would take the loop's place and never get a turn.
    module Reactors
      # @raise [ThreadError] where Heddle's loop runs
      def initialize(...)
        scheduler = Fiber.scheduler
        if scheduler.is_a?(Scheduler)
          Kernel.raise ThreadError, "this thread has a loop of Heddle's already: start tasks in it with " \
                                    "Async { ... }, or make the reactor in a thread of its own"
        end

        super
      end
    end
  end
end
