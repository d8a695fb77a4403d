# frozen_string_literal: true

require "heddle/platform"
require "heddle/scheduler/forks"
require "heddle/scheduler/interrupt_masks"
require "heddle/scheduler/reopening"

module Heddle
  class Scheduler
    # The changes that the first scheduler of a process makes in Ruby. It replaces methods for which Ruby has no
    # scheduler hook, and makes the guard pages of fibers need no memory mappings ({Scheduler.guard_pages}).
    # `HEDDLE_PROTECT=off` and a server's `protect off` prevent these changes.
    #
    # @api private
    module Patches
      class << self
        # @return [String, nil] why changes are forbidden; nil: they are allowed
        attr_reader :forbidden

        # Forbids changes from now on. Earlier changes remain.
        # @param reason [String]
        # @return [void]
        def forbid(reason)
          @forbidden = reason.dup.freeze # frozen, because schedulers of other Ractors read it
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

        # Allows or forbids the changes, depending on the environment. On a platform on which Heddle was not tested, the
        # change of guard pages is forbidden unless HEDDLE_GUARD_PAGES is set.
        # @param environment [Hash{String => String}]
        # @return [void]
        def reset(environment = ENV)
          return forbid("HEDDLE_PROTECT=off") if environment["HEDDLE_PROTECT"].to_s.strip == "off"

          @forbidden = nil
          untested = Platform.untested unless environment.key?("HEDDLE_GUARD_PAGES")
          guard_pages_off(untested && "#{untested}: HEDDLE_GUARD_PAGES=1 or `heddle protect on` switches them on")
        end

        # Makes the changes unless they are forbidden or already made. Each scheduler calls this method.
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
