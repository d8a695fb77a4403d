# frozen_string_literal: true

module Heddle
  class Scheduler
    # IO#reopen puts another file behind a descriptor that fibers may wait for. Ruby interrupts threads that do, and has
    # no hook for schedulers.
    module Reopening
      # @see IO#reopen
      def reopen(...)
        super.tap do
          scheduler = Fiber.scheduler
          scheduler.__send__(:reopened, fileno) if scheduler.is_a?(Scheduler)
        end
      end

      ::IO.prepend(self)
    end
  end
end
