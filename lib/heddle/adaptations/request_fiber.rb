# frozen_string_literal: true

module Heddle
  module Adaptations
    # Replaces the class Fiber where a library keeps state by `Fiber.current`. `Enumerator#next` runs its block in
    # another fiber; there this module returns the fiber of the request or the task.
    module RequestFiber
      # @return [Fiber]
      def self.current
        scheduler = Fiber.current_scheduler
        (scheduler.current_fiber if scheduler.is_a?(Scheduler)) || Fiber.current
      end
    end
  end
end
