# frozen_string_literal: true

module Heddle
  class Pool
    # Tasks that wait for a resource while a task around them has one.
    #
    # @api private
    module Nesting
      class << self
        # @param waiter [Waiter]
        # @param waiters [Array<Waiter>] all that wait, this one too
        # @param slots [Array<Slot>] all that are in use
        # @return [Array<Slot>, nil] the slots that this waiter blocks, if waiters block all slots; nil: it blocks none,
        #   or a slot may be released
        def stuck(waiter, waiters, slots)
          own = slots.select { |slot| waiter.blocks?(slot) }
          return if own.empty?

          own if slots.all? { |slot| own.include?(slot) || waiters.any? { |other| other.blocks?(slot) } }
        end

        # @param waiters [Array<Waiter>]
        # @param slots [Array<Slot>]
        # @return [Boolean] false: {stuck} is nil for each waiter
        def possible?(waiters, slots)
          slots.all? { |slot| waiters.any? { |waiter| waiter.blocks?(slot) } }
        end

        # @return [String]
        def message(name, waiter, slots, count)
          "#{name}: all #{count} resources are held by tasks that wait for other tasks, which need a resource " \
            "themselves, so none is ever released. A task checked one out at #{place(slots.first.place)}; a task " \
            "that it waits for asks for another at #{place(waiter.place)}. Release the first resource before the " \
            "wait, pass it on to the other task, or make the pool larger"
        end

        # @return [String]
        def place(location) = location ? "#{location.path}:#{location.lineno}" : "an unknown place"
      end
    end
  end
end
