# frozen_string_literal: true

require "rbconfig"
# Not by autoload: that would wait for files with the lock of Active Record's pool.
require "heddle/concurrency/pool"

module Heddle
  module Databases
    # Tasks that take a connection of Active Record's pool while a task around them has one: each has its own, and never
    # shares a transaction.
    module NestedLeases
      # Who has a connection, as {Pool::Waiter#blocks?} asks.
      Lease = Struct.new(:fiber, :frame, :place) do
        def block = true
      end
      # Lines of a backtrace that are not the application's.
      LIBRARIES = %r{/(?:activerecord|activesupport)-[\d.]+[^/]*/|\A<internal:|\A#{RbConfig::CONFIG["rubylibdir"]}/}
      private_constant :LIBRARIES

      # Put before Active Record's pool.
      module ConnectionPool
        def checkout(...)
          connection = super
          scheduler = Fiber.current_scheduler
          NestedLeases.taken(self, connection, scheduler) if scheduler.is_a?(Scheduler)
          connection
        end
      end

      class << self
        # @return [void]
        def install = ::ActiveRecord::ConnectionAdapters::ConnectionPool.prepend(ConnectionPool)

        # @api private
        def taken(pool, connection, scheduler)
          task = Concurrency::Context.of(scheduler).task
          connection.instance_variable_set(:@heddle_frame, task&.innermost)
          warn_of_transaction(pool, task) if task&.parent && !@warned && development?
        end

        # Called when a fiber is about to wait for a connection.
        #
        # @param pool [ActiveRecord::ConnectionAdapters::ConnectionPool]
        # @raise [Pool::NestedCheckout] when none can ever come back
        def check(pool)
          connections = pool.connections
          return if connections.empty? || connections.size < pool.size || !Task.current&.parent

          waiter = Pool::Waiter.new(nil) # a backtrace is expensive, and said only in the error
          return unless connections.all? { |one| (lease = lease(one)).fiber && waiter.blocks?(lease) }

          raise Pool::NestedCheckout, "all #{connections.size} connections of the pool #{pool.db_config.name} are " \
                                      "held by tasks that wait for the task that asks for one at #{place}, so none " \
                                      "will ever come back. The first waits at #{waits_at(connections.first.owner)}. " \
                                      "Ask outside the transaction, or make the pool larger"
        end

        private

        def lease(connection)
          owner = connection.owner
          Lease.new((owner if owner.is_a?(Fiber)), connection.instance_variable_get(:@heddle_frame), nil)
        end

        def warn_of_transaction(pool, task)
          around = []
          around << task.fiber while (task = task.parent&.task).is_a?(Task)
          holder = pool.connections.find { |one| around.include?(one.owner) && one.transaction_open? }
          return unless holder

          @warned = true
          warn("Heddle: the task at #{place} takes a database connection of its own while the task around it is in a " \
               "transaction: it does not see what that has changed, and is not rolled back with it")
        end

        def development? = [nil, "development"].include?(ENV["RAILS_ENV"] || ENV.fetch("RACK_ENV", nil))

        def place = foreign(caller(2))

        def waits_at(fiber) = foreign(fiber.alive? ? fiber.backtrace || [] : [])

        def foreign(lines)
          line = lines.find { |one| !Concurrency.own_line?(one) && !one.match?(LIBRARIES) }
          line ? line[/\A.*?:\d+/] : "an unknown place"
        end
      end
    end
  end
end
