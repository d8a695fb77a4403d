# frozen_string_literal: true

module Heddle
  class Pool
    # Finds connections whose fibers wait for something else, such as for another service during a transaction.
    #
    # @api private
    module Unused
      # The default advice at the end of a report.
      ADVICE = "Return it to the pool before such a wait, so that other fibers can use it"
      # Methods of pg that wait on a quiet connection, for a notification.
      LISTENING = /[`'#. ](?:wait_for_notify|notifies_wait)'\z/
      # Places that are remembered, so that each is reported once.
      MOST_PLACES = 1000
      private_constant :LISTENING, :MOST_PLACES

      class << self
        # @param slots [Array<Slot>]
        # @param now [Float]
        # @yieldparam slot [Slot]
        # @yieldreturn [Boolean] whether its connection is quiet: its fiber does not wait for the server's answer
        # @return [Array<Slot>] the slots that have been held for long, were unused at this check and the last one, and
        #   were not reported yet
        def find(slots, now)
          slots.select do |slot|
            before = slot.unused
            slot.unused = !slot.fiber.nil? && yield(slot)
            before && slot.unused && !slot.reported && now - slot.since > Upkeep::HELD_LIMIT
          end
        end

        # @param slots [Array<Slot>]
        # @param scheduler [Scheduler, nil] the loop whose fibers hold them; nil: all slots are returned
        # @return [Array<Slot>] the slots whose fibers wait, but not for a notification. A preempted fiber does not
        #   count as waiting.
        def waiting(slots, scheduler)
          return slots if slots.empty? || scheduler.nil?

          states = {}.compare_by_identity
          scheduler.each_fiber { |fiber, _job, state| states[fiber] = state }
          slots.select { |slot| states[slot.task_fiber || slot.fiber] == :waiting && !listening?(slot.fiber) }
        end

        # Reports the connection, once for each pair of places.
        #
        # @param name [String] of the pool
        # @param seconds [Float]
        # @param checked_out [String] file and line
        # @param waits [String] file and line
        # @param advice [String]
        def report(name, seconds, checked_out, waits, advice = ADVICE)
          places = Ractor.current[:heddle_held_places] ||= {}
          return if places.key?([checked_out, waits])

          places.shift if places.size >= MOST_PLACES
          places[[checked_out, waits]] = true
          Events.report(:pool_connection_held, pool: name, duration: seconds.round(1), checked_out:, place: waits,
                                               advice:)
        end

        # @param fiber [Fiber]
        # @return [String] file and line
        def waits_at(fiber)
          line = backtrace(fiber).find { |one| !Concurrency.own_line?(one) && !one.start_with?("<internal:") }
          line ? line[/\A.*?:\d+/] : "an unknown place"
        end

        private

        def listening?(fiber) = backtrace(fiber).any? { |line| line.match?(LISTENING) }

        def backtrace(fiber) = (fiber.backtrace if fiber.alive?) || []
      end
    end
  end
end
