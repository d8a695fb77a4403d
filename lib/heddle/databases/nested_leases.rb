# frozen_string_literal: true

# Not by autoload: that would wait for files with the lock of Active Record's pool.
require "heddle/databases/active_record/checkouts"
require "heddle/databases/held_connections"

module Heddle
  module Databases
    # Tasks that take a connection of Active Record's pool while a task around them has one: each has its own, and never
    # shares a transaction.
    module NestedLeases
      # Put before Active Record's pool.
      module ConnectionPool
        def checkout(...)
          connection = super
          scheduler = Fiber.current_scheduler
          NestedLeases.taken(self, connection, scheduler) if scheduler.is_a?(Scheduler)
          connection
        end

        def lease_connection
          connection = super
          ActiveRecord::Checkouts.of(self).leased(connection) if HeldConnections.report?
          connection
        end
      end

      class << self
        # @return [void]
        def install = ::ActiveRecord::ConnectionAdapters::ConnectionPool.prepend(ConnectionPool)

        # @api private
        def taken(pool, connection, scheduler)
          ActiveRecord::Checkouts.of(pool).taken(connection, scheduler)
          return if @warned || !Databases.development?

          task = Concurrency::Context.of(scheduler).task
          warn_of_transaction(pool, task) if task&.parent
        end

        private

        def warn_of_transaction(pool, task)
          around = []
          around << task.fiber while (task = task.parent&.task).is_a?(Task)
          holder = pool.connections.find { |one| around.include?(one.owner) && one.transaction_open? }
          return unless holder

          @warned = true
          warn("Heddle: the task at #{Places.innermost(caller)} takes a database connection of its own while the " \
               "task around it is in a transaction: it does not see what that has changed, and is not rolled back " \
               "with it")
        end
      end
    end
  end
end
