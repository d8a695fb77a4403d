# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # A mutex that is locked only for moments, and never during a wait. An exception from outside, such as a time
      # limit, can't interrupt the wait for the mutex. Otherwise the code that releases a connection could be
      # interrupted there, and the connection would stay in use.
      #
      # @api private
      class Lock < Thread::Mutex
        # In an event loop, an exception from outside interrupts a fiber only where it waits. In a thread without an
        # event loop, it may interrupt the code anywhere.
        # @param timing [Symbol] when exceptions may interrupt the block in such a thread: `:immediate`,
        #   `:on_blocking`, `:never`
        def self.interruptible(timing, &)
          Fiber.current_scheduler ? yield : Thread.handle_interrupt(Exception => timing, &)
        end

        # While a fiber waits for the mutex, no other fiber of its thread runs.
        def synchronize(&) = Lock.interruptible(:never) { Fiber.blocking { super(&) } }
      end
    end
  end
end
