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
          ActiveRecord::Checkouts.new(self).taken(connection, scheduler) if scheduler.is_a?(Scheduler)
          connection
        end

        def lease_connection
          connection = super
          ActiveRecord::Checkouts.new(self).leased(connection) if HeldConnections.report?
          connection
        end
      end

      # @return [void]
      def self.install = ::ActiveRecord::ConnectionAdapters::ConnectionPool.prepend(ConnectionPool)
    end
  end
end
