# frozen_string_literal: true

module Heddle
  class Scheduler
    # IO#reopen replaces the file of a descriptor that fibers of any loop may wait for. Ruby interrupts the threads that
    # wait for that descriptor, but has no hook for schedulers. {Patches} prepends this module to IO.
    #
    # @api private
    module Reopening
      # @see IO#reopen
      def reopen(...)
        super.tap { Scheduler.__send__(:reopened, fileno) }
      end
    end
  end
end
