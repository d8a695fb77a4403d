# frozen_string_literal: true

module Heddle
  class Scheduler
    # Makes IO#reopen wake the fibers that wait for the descriptor, in any loop, because the descriptor now refers to
    # another file. Ruby itself interrupts only waiting threads, and calls no scheduler hook. {Patches} prepends this
    # module to IO.
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
