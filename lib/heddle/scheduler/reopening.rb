# frozen_string_literal: true

module Heddle
  class Scheduler
    # IO#reopen puts another file behind a descriptor that fibers may wait for, of this thread's loop or of another's.
    # Ruby interrupts threads that do, and has no hook for schedulers.
    #
    # @api private
    module Reopening
      # @see IO#reopen
      def reopen(...)
        super.tap { Scheduler.__send__(:reopened, fileno) }
      end

      ::IO.prepend(self)
    end
  end
end
