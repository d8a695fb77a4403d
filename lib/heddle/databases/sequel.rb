# frozen_string_literal: true

require "English"
require "heddle/databases/checkouts" # now: autoload would read files while a pool's lock is held

module Heddle
  module Databases
    # Ends abandoned queries and transactions of Sequel. {ConnectionPool} changes Sequel's pools.
    module Sequel
      # connection => true if it is unknown which prepared statements the server has
      SPOILED = SideTable.new(:heddle_spoiled)
      private_constant :SPOILED

      # Prepended to Sequel's class of databases. Ends an abandoned query before anything else is sent.
      module Database
        def initialize(...)
          super
          Sequel.prepare_pool(pool)
        end

        # @see ::Sequel::Database#log_connection_yield
        def log_connection_yield(sql, connection, arguments = nil)
          ended = false
          value = Account.wait_for(Account::QUERY) { super }
          ended = true
          value
        ensure
          Sequel.interrupted(sql, connection) unless ended
        end

        # When Fiber#kill ends a transaction's block, there is no exception, so Sequel would commit a half-done
        # transaction. Closes the connection or rolls back instead.
        #
        # @see ::Sequel::Database#commit_or_rollback_transaction
        def commit_or_rollback_transaction(exception, connection, options)
          return super if exception || !Fiber.current_scheduler.is_a?(Scheduler)

          killed = lambda do
            driver = Databases.driver(connection)
            driver ? driver.abandon(connection) : rollback_transaction(connection, options)
          end
          Concurrency.unless_killed(killed) { super }
        end

        # @see ::Sequel::Database#new_connection
        def new_connection(server)
          Databases.install # the adapter has loaded the driver
          super.tap { |connection| Sequel.wait_in_ruby(connection, server_opts(server)) }
        end

        private

        # With MySQL and MariaDB, the first transaction asks the server for its version, to find out whether it supports
        # savepoints. This method asks before Sequel records the transaction. If Sequel asked later, an interrupt of
        # that query would make Sequel ask again over a closed connection, or raise NoMethodError because the record of
        # the transaction is missing.
        def _transaction(...)
          supports_savepoints?
          super
        end
      end

      # Prepended to Sequel's singleton class. The mutex of Sequel.synchronize protects the list of open transactions
      # and other data. A fiber must not switch while it has the mutex. If it were interrupted there, its connection
      # would return to the pool with the transaction still in the list. The next transaction on that connection would
      # then send no BEGIN.
      module DataMutex
        def synchronize(&) = Fiber.blocking { super }
      end

      # Overrides a method of Sequel's extension fiber_concurrency, so that an Enumerator's block has the connection and
      # transaction of its request, as with Active Record.
      module RequestConcurrency
        # @return [Fiber] the fiber that owns the connections
        def current = Adaptations::RequestFiber.current
      end

      class << self
        # Gives each request and task its own connections. Idempotent.
        # @return [void]
        def isolate
          ::Sequel.extension(:fiber_concurrency)
          ::Sequel.extend(RequestConcurrency)
        end

        # @return [void]
        def install
          ::Sequel.singleton_class.prepend(DataMutex)
          ::Sequel::Database.prepend(Database)
          ::Sequel.synchronize { ::Sequel::DATABASES.dup }.each { |database| prepare(database) }
        end

        # Prepares a database that was made before {.install}. Closes its idle connections to MySQL and MariaDB: Heddle
        # has not read their CONNECTION_ID(), so it could not kill their queries.
        #
        # @param database [::Sequel::Database]
        # @return [void]
        def prepare(database)
          prepare_pool(database.pool)
          database.disconnect if %i[mysql2 trilogy].include?(database.adapter_scheme)
          return unless database.database_type == :sqlite

          database.pool.all_connections { |connection| wait_in_ruby(connection, database.opts) }
        end

        # Lets the fiber wait in Ruby for the lock of a SQLite file. By default SQLite itself waits and keeps the GVL,
        # so the fiber that has the file's lock can't continue, and the wait fails after `timeout`. Does nothing if the
        # application prepares connections itself (`after_connect`), because it may have configured another way to wait.
        #
        # @param connection [Object]
        # @param options [Hash] the options of the connection's server
        # @return [void]
        def wait_in_ruby(connection, options)
          return if options[:after_connect] || !connection.respond_to?(:busy_handler_timeout=)

          connection.busy_handler_timeout = options.fetch(:timeout, 5_000).to_i
        end

        # Changes the pool's class, because the pool itself may be frozen.
        #
        # @param pool [::Sequel::ConnectionPool]
        # @return [void]
        def prepare_pool(pool)
          return if %i[single sharded_single].include?(pool.pool_type)

          pool.class.prepend(ConnectionPool)
          pool.class.prepend(PoolMutex)
        end

        # Called when a statement was interrupted or has failed. After an interrupted PREPARE or DEALLOCATE it is
        # unknown whether the server has the prepared statement. Sequel would repeat the command and fail each time. So
        # the connection is closed before another fiber gets it.
        #
        # @param sql [String]
        # @param connection [Object]
        # @return [void]
        def interrupted(sql, connection)
          return unless postgresql?(connection)

          spoiled = sql.start_with?("PREPARE ", "DEALLOCATE ") && !$ERROR_INFO.is_a?(::PG::Error)
          SPOILED[connection] = true if spoiled
          settle(connection)
        end

        # @param connection [Object]
        # @return [void]
        def settle(connection)
          Postgresql.settle(connection) if postgresql?(connection)
        end

        # @param connection [Object]
        # @return [Boolean] whether another fiber is cancelling the connection's query, because the fiber that sent it
        #   was killed
        def settling?(connection) = postgresql?(connection) && Postgresql.settling?(connection)

        # With PostgreSQL, first ends the query that the connection's last user left running, and the pipeline mode that
        # it did not end.
        #
        # @param connection [Object]
        # @return [Boolean] whether another fiber can use it: it is open, here and on the server, no query runs, and
        #   its prepared statements are known
        def fit?(connection)
          return fit_for_postgresql?(connection) if postgresql?(connection)

          driver = Databases.driver(connection) or return !connection.respond_to?(:closed?) || !connection.closed?
          driver.alive?(connection)
        end

        private

        def fit_for_postgresql?(connection)
          return false if SPOILED[connection]

          Postgresql.settle(connection) && Postgresql.leave_pipeline(connection) && Postgresql.alive?(connection)
        end

        def postgresql?(connection) = defined?(::PG::Connection) && connection.is_a?(::PG::Connection)
      end
    end
  end
end

require "heddle/databases/sequel/checkouts"
require "heddle/databases/sequel/connection_pool"
