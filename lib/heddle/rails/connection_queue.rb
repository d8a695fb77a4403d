# frozen_string_literal: true

module Heddle
  module Rails
    # Put before Active Record's queue of those who wait for a connection: who waits counts as load, so that the server
    # lets no more requests in than the pool can serve, and one that is cancelled in the moment in which it is given a
    # connection passes its turn on.
    module ConnectionQueue
      # @return [void]
      def self.install = ::ActiveRecord::ConnectionAdapters::ConnectionPool::Queue.prepend(self)

      private

      def wait_poll(timeout)
        scheduler = Fiber.current_scheduler
        return super unless scheduler.is_a?(Scheduler)

        Concurrency::Context.of(scheduler).wait_for_pool { super }
      rescue Exception
        @cond.signal if any?
        raise
      end
    end
  end
end
