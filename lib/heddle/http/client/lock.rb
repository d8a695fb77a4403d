# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # A mutex that is locked only for moments, and never during a wait. A fiber is not switched while it waits for the
      # mutex. So it can't be interrupted there, and its connection is always released.
      #
      # @api private
      class Lock < Thread::Mutex
        def synchronize(&) = Fiber.blocking { super(&) }
      end
    end
  end
end
