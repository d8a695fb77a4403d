# frozen_string_literal: true

module Heddle
  class Scheduler
    # Makes Thread.handle_interrupt also delay time limits, which the loop raises, not another thread. Ruby has no hook
    # for this, and keeps the timings by thread, where they would apply to all fibers. {Patches} prepends this module to
    # Thread's singleton class.
    #
    # @api private
    module InterruptMasks
      # @see Thread.handle_interrupt
      def handle_interrupt(timings, &)
        scheduler = Fiber.current_scheduler
        return super unless block_given? && timings.is_a?(Hash) && scheduler.is_a?(Scheduler)

        super { scheduler.__send__(:mask_interrupts, timings, timings.value?(:immediate), &) }
      end
    end
  end
end
