# frozen_string_literal: true

module Heddle
  module Databases
    module ActiveRecord
      # Prepended to the class of Active Record's queue of idle connections, in which fibers wait. Counts the waits, so
      # that the server begins no more requests than the pool can serve. If a task is cancelled or killed just when it
      # gets a connection, another task gets this connection.
      module ConnectionQueue
        # The statistics of a queue.
        Statistics = Struct.new(:waits, :wait_seconds, :timeouts)

        # @return [void]
        def self.install = ::ActiveRecord::ConnectionAdapters::ConnectionPool::Queue.prepend(self)

        # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
        # @return [Hash{Symbol => Numeric}] waits, wait_seconds, timeouts; empty if they are not counted
        def self.statistics(pool)
          queue = pool.instance_variable_get(:@available)
          queue.is_a?(self) ? queue.heddle_statistics.to_h : {}
        end

        # @api private
        def heddle_statistics = @heddle_statistics ||= Statistics.new(0, 0.0, 0)

        # Do more fibers wait than there are idle connections?
        #
        # @api private
        def heddle_needs_connection? = @heddle_waiting.to_i > @queue.size

        # The connections that {MaxTotal#close} closes at their check-in. The queue wakes no fiber for these.
        #
        # @api private
        def heddle_leaving = @heddle_leaving ||= {}.compare_by_identity

        def add(connection) = heddle_leaving.delete(connection) ? @lock.remove(connection) : super

        private

        def wait_poll(timeout)
          began = Concurrency.now
          heddle_statistics.waits += 1
          @heddle_waiting = @heddle_waiting.to_i + 1
          limit = MaxTotal.of(@lock) if @lock.is_a?(::ActiveRecord::ConnectionAdapters::ConnectionPool)
          limit&.report_wait
          scheduler = Fiber.current_scheduler
          connection = scheduler.is_a?(Scheduler) ? heddle_wait(scheduler) { super } : super
        rescue ::ActiveRecord::ConnectionTimeoutError => e
          heddle_statistics.timeouts += 1
          raise limit&.explain(e, @lock) || e
        ensure
          @heddle_waiting -= 1
          limit&.report_wait
          @cond.signal if connection.nil? && any? # in `ensure`, because Fiber#kill runs no `rescue`
          heddle_statistics.wait_seconds += Concurrency.now - began
        end

        def heddle_wait(scheduler, &wait)
          Concurrency::Context.of(scheduler).wait_for_pool do
            next yield unless @lock.is_a?(::ActiveRecord::ConnectionAdapters::ConnectionPool)

            Checkouts.new(@lock).wait(scheduler, &wait)
          end
        end
      end
    end
  end
end
