# frozen_string_literal: true

require "heddle/platform"
require "heddle/scheduler/forks"
require "heddle/scheduler/interrupt_masks"
require "heddle/scheduler/reopening"

module Heddle
  class Scheduler
    # The changes that the first scheduler of a process makes in Ruby: methods for which it has no hook, and the guard
    # pages of fibers' stacks. `HEDDLE_PROTECT=off` leaves Ruby as it is, as does a server with `protect off`.
    #
    # @api private
    module Patches
      class << self
        # @return [String, nil] why nothing is changed; nil: it may be
        attr_reader :forbidden

        # Leaves Ruby as it is from now on. Changes that were made before stay.
        # @param reason [String]
        # @return [void]
        def forbid(reason)
          @forbidden = reason.dup.freeze # schedulers of other Ractors read it
          guard_pages_off(reason)
        end

        # Makes all changes now, on any platform.
        # @return [void]
        def allow
          @forbidden = nil
          guard_pages_off(nil)
          apply
          Scheduler.guard_pages
        end

        # Allows or forbids the changes, depending on the environment and the platform.
        # @param environment [Hash{String => String}]
        # @return [void]
        def reset(environment = ENV)
          return forbid("HEDDLE_PROTECT=off") if environment["HEDDLE_PROTECT"].to_s.strip == "off"

          @forbidden = nil
          untested = Platform.untested unless environment.key?("HEDDLE_GUARD_PAGES")
          guard_pages_off(untested && "#{untested}: HEDDLE_GUARD_PAGES=1 or heddle protect on switches them on")
        end

        # Called by each scheduler.
        # @return [void]
        def apply
          return if @forbidden || ::Process.singleton_class.include?(Forks)

          Scheduler.__send__(:patch_alone) do
            ::IO.prepend(Reopening)
            ::Thread.singleton_class.prepend(InterruptMasks)
            ::Process.singleton_class.prepend(Forks)
          end
        end

        private

        def guard_pages_off(reason) = Scheduler.__send__(:forbid_guard_pages, reason)
      end
      reset
    end
  end
end
