# frozen_string_literal: true

module Heddle
  class Pool
    # Detects nested check-outs: a task waits for a resource of the pool, while another task, which has a resource of
    # the same pool, waits for this task.
    #
    # @api private
    module Nesting
      class << self
        # @param waiter [Waiter]
        # @param waiters [Array<Waiter>] all waiters of the pool, including this one
        # @param slots [Array<Slot>] all slots in use
        # @return [Array<Slot>, nil] the slots that this waiter blocks, if every slot is blocked by some waiter; nil:
        #   this waiter blocks no slot, or a slot may be released
        def stuck(waiter, waiters, slots)
          own = slots.select { |slot| waiter.blocks?(slot) }
          return if own.empty?

          own if slots.all? { |slot| own.include?(slot) || waiters.any? { |other| other.blocks?(slot) } }
        end

        # @param waiters [Array<Waiter>]
        # @param slots [Array<Slot>]
        # @return [Boolean] false: {stuck} would return nil for each waiter
        def possible?(waiters, slots)
          slots.all? { |slot| waiters.any? { |waiter| waiter.blocks?(slot) } }
        end

        # @return [String] the message of a NestedCheckoutError
        def message(name, waiter, slots, count)
          "#{name}: deadlock, because all #{count} resources are in use by tasks that wait for other tasks, which " \
            "also need a resource. A task checked out a resource at #{place(slots.first.place)}; another task, which " \
            "it waits for, requests a resource at #{place(waiter.place)}. Release the first resource before waiting, " \
            "pass it to the other task, or make the pool larger"
        end

        # @return [String] file and line
        def place(location) = location ? "#{location.path}:#{location.lineno}" : "an unknown place"
      end
    end
  end
end
