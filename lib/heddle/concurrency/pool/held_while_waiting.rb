# frozen_string_literal: true

module Heddle
  class Pool
    # Finds connections whose fibers wait for something other than the connection, for example for another service
    # during a transaction.
    #
    # @api private
    module HeldWhileWaiting
      # Seconds after which a connection is reported if it is checked out and its fiber waits for something else.
      LIMIT = 1.0
      # The advice at the end of the report.
      ADVICE = "Return the connection to the pool before such a wait, so that other fibers can use it"
      # Methods of the gem pg that wait for a notification: their connections are quiet but in use.
      LISTENING = /[`'#. ](?:wait_for_notify|notifies_wait)'\z/
      # Maximum number of remembered pairs: the line that checked a connection out, and the line where its fiber waits.
      # Each pair is reported once.
      MOST_PLACES = 1000
      private_constant :LIMIT, :LISTENING, :MOST_PLACES

      class << self
        # @param slots [Array<Slot>]
        # @param now [Float]
        # @yieldparam slot [Slot]
        # @yieldreturn [Boolean] whether the connection is quiet: no query runs on it
        # @return [Array<Slot>] the slots that were checked out for long, were unused at this check and the previous
        #   one, and were not reported yet
        def find(slots, now)
          slots.select do |slot|
            before = slot.unused
            slot.unused = !slot.fiber.nil? && yield(slot)
            before && slot.unused && !slot.reported && now - slot.since > LIMIT
          end
        end

        # @param slots [Array<Slot>]
        # @param scheduler [Scheduler, nil] the loop whose fibers have the slots; nil: return all slots
        # @return [Array<Slot>] the slots whose fibers wait for something other than a notification of the database. A
        #   preempted fiber does not count as waiting.
        def waiting(slots, scheduler)
          return slots if slots.empty? || scheduler.nil?

          states = {}.compare_by_identity
          scheduler.each_fiber { |fiber, _job, state| states[fiber] = state }
          slots.select { |slot| states[slot.task_fiber || slot.fiber] == :waiting && !listening?(slot.fiber) }
        end

        # Reports a connection, once for each pair of `checked_out` and `waits`.
        #
        # @param name [String] the pool's name
        # @param seconds [Float] for how long the connection was checked out
        # @param checked_out [String] file and line that has checked it out
        # @param waits [String] file and line where the fiber waits
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
        # @return [String] file and line where the fiber waits
        def waits_at(fiber)
          line = Concurrency.backtrace(fiber).find { |one| !one.start_with?(Concurrency::OWN_PREFIX, "<internal:") }
          line ? line[/\A.*?:\d+/] : "an unknown place"
        end

        private

        def listening?(fiber) = Concurrency.backtrace(fiber).any? { |line| line.match?(LISTENING) }
      end
    end
  end
end
