# frozen_string_literal: true

module Heddle
  class Pool
    # Finds connections whose fibers wait for something else, such as a call of another service in a transaction.
    module Held
      class << self
        # @param slots [Array<Slot>]
        # @param driver [Module] of {Databases}
        # @param now [Float]
        # @return [Array<Slot>] those that have been held for long, unused at this look and the one before, and were not
        #   reported yet
        def find(slots, driver, now)
          slots.select do |slot|
            before = slot.unused
            slot.unused = !slot.fiber.nil? && driver.quiet?(slot.resource)
            before && slot.unused && !slot.reported && now - slot.since > Upkeep::PATIENCE
          end
        end

        # @return [String]
        def message(name, slot, now)
          "#{name}: a connection is held for #{(now - slot.since).round(1)} s by a fiber that waits for something " \
            "else. Checked out at #{Nesting.place(slot.place)}; waits at #{waits_at(slot.fiber)}. " \
            "Give it back before such a wait: no other fiber can use it"
        end

        private

        def waits_at(fiber)
          lines = fiber.alive? ? fiber.backtrace || [] : []
          line = lines.find { |one| !Concurrency.own_line?(one) && !one.start_with?("<internal:") }
          line ? line[/\A.*?:\d+/] : "an unknown place"
        end
      end
    end
  end
end
