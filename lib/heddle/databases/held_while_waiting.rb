# frozen_string_literal: true

require "heddle/databases/checkouts"

module Heddle
  module Databases
    # Reports connections of Active Record and Sequel that are checked out while their fibers wait for something else,
    # as {Pool} does for its resources. Each loop has one object; its task runs while connections are in use.
    class HeldWhileWaiting
      class << self
        # @return [Boolean] whether to report
        def report?
          Pool.report_held_connections.nil? ? Databases.development? : Pool.report_held_connections
        end

        # @param scheduler [Scheduler]
        # @return [HeldWhileWaiting] the loop's object
        def of(scheduler)
          scheduler.instance_variable_get(:@held_connections) ||
            scheduler.instance_variable_set(:@held_connections, new(scheduler))
        end
      end

      # @param scheduler [Scheduler]
      def initialize(scheduler)
        @scheduler = scheduler
        @slots = {}.compare_by_identity
        @upkeep = Pool::Upkeep.new(self, method(:tend))
      end

      # @return [String] what is watched, for the name of the task
      def name = "connections"

      # @return [Integer] number of connections that are checked out, or were at the last check
      def busy = @slots.size

      # Records a check-out.
      # @param slot [Pool::Slot]
      # @param checkouts [Checkouts]
      def taken(slot, checkouts)
        @slots[slot] = checkouts
        @upkeep.used(@scheduler)
      end

      private

      # @return [nil] there is nothing to close
      def tend
        @slots.select! { |slot, checkouts| checkouts.holds?(slot) }
        now = Concurrency.now
        found = Pool::HeldWhileWaiting.find(@slots.keys, now) { |slot| @slots[slot].quiet?(slot.resource) }
        Pool::HeldWhileWaiting.waiting(found, @scheduler).each { |slot| report(slot, @slots[slot], now) }
        nil
      end

      def report(slot, checkouts, now)
        slot.reported = true
        lines = Concurrency.backtrace(slot.fiber)
        Pool::HeldWhileWaiting.report(checkouts.name, now - slot.since, checkouts.checked_out(slot, lines),
                                      AppLines.innermost(lines), checkouts.advice(slot))
      end
    end
  end
end
