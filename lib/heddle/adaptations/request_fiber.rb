# frozen_string_literal: true

module Heddle
  module Adaptations
    # Stands for the class Fiber where a library keeps something by `Fiber.current`: in the fiber of an Enumerator's
    # `next` the fiber that counts is the one that runs the request or the task.
    module RequestFiber
      # @return [Fiber]
      def self.current
        scheduler = Fiber.current_scheduler
        (scheduler.current_fiber if scheduler.is_a?(Scheduler)) || Fiber.current
      end
    end
  end
end
