# frozen_string_literal: true

module Heddle
  module Adaptations
    # Replaces the class Fiber in libraries that keep state per fiber (`Fiber.current`). `Enumerator#next` runs its
    # block in another fiber; {current} returns the fiber of the request or task there, too.
    module RequestFiber
      # @return [Fiber]
      def self.current
        scheduler = Fiber.current_scheduler
        (scheduler.current_fiber if scheduler.is_a?(Scheduler)) || Fiber.current
      end
    end
  end
end
