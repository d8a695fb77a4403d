# frozen_string_literal: true

module Heddle
  class Scheduler
    # Makes Thread.handle_interrupt apply to time limits, too. Ruby applies it only to exceptions from other threads,
    # but the loop itself raises time limits. Ruby's masks belong to a thread, and so apply to all of its fibers; those
    # that Heddle adds belong to a fiber. {Patches} prepends this module to Thread's singleton class.
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
