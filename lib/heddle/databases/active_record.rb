# frozen_string_literal: true

module Heddle
  module Databases
    # Ends abandoned queries of Active Record, and limits and watches its pools. With MySQL and MariaDB, Heddle's module
    # for the driver ({Trilogy} or {Mysql2}) closes the connection after an abandoned query, and Active Record
    # reconnects.
    module ActiveRecord
      autoload :ConnectionQueue, "heddle/databases/active_record/connection_queue"
      autoload :MaxTotal, "heddle/databases/active_record/max_total"

      # Prepended to the adapter for PostgreSQL. Ends an abandoned query before the next statement, such as ROLLBACK, is
      # sent.
      module PostgresqlAdapter
        # Ends a running query before the connection is checked in. If that fails, closes the connection; Active Record
        # reconnects at the connection's next use.
        #
        # @api private
        def heddle_settle
          raw = @raw_connection
          return unless raw.is_a?(::PG::Connection)

          settled = Postgresql.settle(raw) { heddle_abandon(raw) }
          disconnect! unless settled && Postgresql.leave_pipeline(raw)
        end

        # Passes the driver's connection to another fiber, which ends the running query and closes the connection.
        # Active Record reconnects at the next use.
        #
        # @api private
        def heddle_abandon(raw = @raw_connection)
          @raw_connection = nil
          disconnect!
          Postgresql.abandon(raw) { raw.close unless raw.finished? } if raw.is_a?(::PG::Connection)
        end

        # Rolls back a transaction that the server has begun. If that fails, the driver's connection is closed.
        #
        # @api private
        def heddle_roll_back
          raw = @raw_connection
          return unless raw.is_a?(::PG::Connection) && Postgresql.transaction?(raw)
          return Postgresql.clean(raw) unless Fiber.current_scheduler

          Concurrency.unless_killed(-> { heddle_abandon(raw) }) { Postgresql.clean(raw) }
        end

        private

        def with_raw_connection(**options)
          super do |raw|
            ended = false
            value = yield raw
            ended = true
            value
          ensure
            Postgresql.settle(raw) { heddle_abandon(raw) } if !ended && raw.is_a?(::PG::Connection)
          end
        end

        # Active Record calls this method after an error. A closed connection can't send the query again.
        def retryable_query_error?(...) = !@raw_connection&.finished? && super
      end

      # Prepended to the base class of adapters. Adds the time in the driver to the part `query` of the request's
      # time account.
      module Adapter
        private

        def with_raw_connection(**options)
          super { |raw| Account.wait_for(Account::QUERY) { yield raw } }
        end
      end

      # Prepended to the adapters for MySQL and MariaDB.
      module MysqlAdapter
        # Called before the connection is checked in. After an abandoned query, Heddle's module for the driver has
        # already closed the driver's connection. This method itself closes a connection of mysql2 that has a streamed
        # result which was not read to its end. In both cases Active Record reconnects at the next use.
        #
        # @api private
        def heddle_settle
          return unless (raw = @raw_connection)
          return disconnect! if raw.closed?

          heddle_abandon if defined?(::Mysql2::Client) && raw.is_a?(::Mysql2::Client) && Mysql2.streaming?(raw)
        end

        # Closes the driver's connection. Calls `abandon` of Heddle's module for the driver last, because that does not
        # return in a fiber that is being killed.
        #
        # @api private
        def heddle_abandon(raw = @raw_connection)
          @raw_connection = nil
          disconnect!
          Databases.driver(raw)&.abandon(raw) if raw
        end
      end

      # Prepended to Active Record's class for the transactions of a connection. When Fiber#kill ends a transaction's
      # block, there is no exception, so Active Record would commit a half-done transaction. Closes the connection
      # instead.
      module TransactionManager
        def commit_transaction
          return super unless Fiber.current_scheduler.is_a?(Scheduler)

          killed = -> { @connection.heddle_abandon if @connection.respond_to?(:heddle_abandon) }
          Concurrency.unless_killed(killed) { super() }
        end
      end

      # Prepended to Active Record's class of transactions that are not savepoints. When BEGIN is interrupted, the
      # server may have executed it. Active Record considers the transaction not begun, and would never roll it back.
      module RealTransaction
        def materialize!
          super
        ensure
          connection.heddle_roll_back if !materialized? && connection.respond_to?(:heddle_roll_back)
        end
      end

      # Prepended to Active Record's pool. When a connection is checked in, ends queries that the application has sent
      # by the driver's own methods. Records check-outs, so that tasks can't wait for each other endlessly
      # ({Checkouts}).
      module ConnectionPool
        def checkout(...)
          connection = super
          scheduler = Fiber.current_scheduler
          Checkouts.new(self).taken(connection, scheduler) if scheduler.is_a?(Scheduler)
          connection
        end

        def lease_connection
          connection = super
          Checkouts.new(self).leased(connection) if HeldWhileWaiting.report?
          connection
        end

        def checkin(connection)
          Checkouts.forget(connection)
          connection.heddle_settle if connection.respond_to?(:heddle_settle)
        ensure
          limit = MaxTotal.of(self)
          limit&.yields?(self, connection) ? limit.close(@available, connection) { super } : super
        end

        # Defers a cancellation while the fiber waits for the pool's lock, which another thread may have. Otherwise a
        # cancelled check-in would lose its connection, and a cancelled check-out could leave the pool's count of
        # connections that are being made too high.
        def synchronize
          mon_try_enter || Heddle.shield { mon_enter }
          yield
        ensure
          mon_exit if mon_owned?
        end

        # @api private
        def heddle_size = @connections.to_a.size

        # Is the pool closing all its connections now, or was it discarded? A pool that closes its connections iterates
        # over the list of them, so other code must not remove a connection from that list.
        #
        # @api private
        def heddle_closing? = @connections.nil? || @threads_blocking_new_connections.positive?

        # Does the pool's own limit allow another connection?
        #
        # @api private
        def heddle_grows? = !heddle_closing? && (size.nil? || @connections.size + @now_connecting < size)

        # Do fibers wait, and may the pool open another connection?
        #
        # @api private
        def heddle_needs_connection? = heddle_grows? && @available.heddle_needs_connection?

        # @api private
        # @return [ActiveRecord::ConnectionAdapters::AbstractAdapter, nil] an idle connection, now checked out
        def heddle_take_idle = @available&.poll

        # @api private
        # @return [ActiveRecord::ConnectionAdapters::AbstractAdapter, nil] a new connection, for a waiting fiber
        def heddle_make = try_to_checkout_new_connection(waited: true)

        private

        def try_to_checkout_new_connection(waited: false, &)
          limit = MaxTotal.of(self)
          limit && heddle_grows? ? limit.make(waited) { super(&) } : super(&)
        end

        # Active Record has had this method since version 7.2.
        def connection_lease
          Databases::ActiveRecord.check_isolation if Fiber.current_scheduler.is_a?(Scheduler)
          super
        end
      end

      # Reports once that the tasks of a loop share a connection, because Active Record's isolation level is :thread.
      # @return [void]
      def self.check_isolation
        return if @shared || ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber

        @shared = true
        Events.report(:connection_shared)
      end

      # @return [void]
      def self.install
        # Loaded now rather than by autoload, which would load files while the fiber has the lock of a pool.
        require "heddle/concurrency/shield"
        require "heddle/databases/active_record/checkouts"
        require "heddle/databases/active_record/max_total"
        require "heddle/databases/held_while_waiting"
        ::ActiveRecord::ConnectionAdapters::ConnectionPool.prepend(ConnectionPool)
        ::ActiveRecord::ConnectionAdapters::AbstractAdapter.prepend(Adapter)
        ::ActiveRecord::ConnectionAdapters::TransactionManager.prepend(TransactionManager)
        ::ActiveRecord::ConnectionAdapters::RealTransaction.prepend(RealTransaction)
        ConnectionQueue.install
        AsyncQueries.install
        ::ActiveSupport.on_load(:active_record_postgresqladapter) do
          Postgresql.install # loads the file now, because a fiber that is being killed can't wait for it
          prepend PostgresqlAdapter
        end
        ::ActiveSupport.on_load(:active_record_trilogyadapter) { Databases::ActiveRecord.prepare_mysql(self) }
        ::ActiveSupport.on_load(:active_record_mysql2adapter) { Databases::ActiveRecord.prepare_mysql(self) }
      end

      # Prepares an adapter. Closes idle connections that were opened before {.install}: Heddle has not read their
      # CONNECTION_ID(), so it could not kill their queries.
      #
      # @param adapter [Class]
      # @return [void]
      def self.prepare_mysql(adapter)
        Databases.install
        adapter.prepend(MysqlAdapter)
        ::ActiveRecord::Base.connection_handler.each_connection_pool do |pool|
          pool.flush! if %w[mysql2 trilogy].include?(pool.db_config.adapter)
        end
      end
    end
  end
end
