# frozen_string_literal: true

require "English"
require "heddle/databases/checkouts" # not by autoload, which would read files while the lock of Sequel's pool is held

module Heddle
  module Databases
    # Sequel's databases: their statements and transactions. {ConnectionPool} has its pools.
    module Sequel
      # Connections whose prepared statements are unknown.
      SPOILED = SideTable.new(:heddle_spoiled)
      private_constant :SPOILED

      # Prepended to Sequel's databases: an abandoned query is settled before anything else is sent.
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

        # When Fiber#kill ends a transaction's block, Sequel gets here without an exception, and would commit the half
        # that the block has done.
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
          Databases.install # the driver was loaded with the adapter
          super.tap { |connection| Sequel.wait_in_ruby(connection, server_opts(server)) }
        end

        private

        # With MySQL and MariaDB the first transactions ask the server for its version, to know about savepoints. Here
        # the question is sent before Sequel enters the transaction into its list. Otherwise an interrupted transaction
        # would ask again over a closed connection, or not find its entry (NoMethodError).
        def _transaction(...)
          supports_savepoints?
          super
        end
      end

      # Prepended to the singleton class of Sequel, for Sequel.synchronize: its mutex, the only one, guards the list of
      # open transactions and other data. The fiber does not switch while it holds the mutex. If it were interrupted
      # there, its connection would return to the pool with the transaction still in the list. The next transaction with
      # that connection would send no BEGIN.
      module DataMutex
        def synchronize(&) = Fiber.blocking { super }
      end

      # Extends Sequel, over its extension fiber_concurrency: an Enumerator's block has the connection and the
      # transaction of its request, as with Active Record.
      module RequestConcurrency
        # @return [Fiber] that connections belong to
        def current = Adaptations::RequestFiber.current
      end

      class << self
        # Connections belong to requests and tasks from now on. Idempotent.
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

        # Closes idle connections of MySQL and MariaDB that were opened before {.install}: Heddle has not asked for
        # their CONNECTION_ID(), and could not kill their queries.
        #
        # @param database [::Sequel::Database]
        # @return [void]
        def prepare(database)
          prepare_pool(database.pool)
          database.disconnect if %i[mysql2 trilogy].include?(database.adapter_scheme)
          return unless database.database_type == :sqlite

          database.pool.all_connections { |connection| wait_in_ruby(connection, database.opts) }
        end

        # Sequel lets SQLite itself wait for the file's lock, and SQLite keeps Ruby's lock meanwhile. So the fiber that
        # has the file's lock can't continue, and the wait fails after `timeout`. An application that prepares its
        # connections itself (`after_connect`) may have decided otherwise.
        #
        # @param connection [Object]
        # @param options [Hash] of its server
        # @return [void]
        def wait_in_ruby(connection, options)
          return if options[:after_connect] || !connection.respond_to?(:busy_handler_timeout=)

          connection.busy_handler_timeout = options.fetch(:timeout, 5_000).to_i
        end

        # Prepends to the pool's class, because the pool itself may be frozen.
        #
        # @param pool [::Sequel::ConnectionPool]
        # @return [void]
        def prepare_pool(pool)
          return if %i[single sharded_single].include?(pool.pool_type)

          pool.class.prepend(ConnectionPool)
          pool.class.prepend(QueueMutex) if pool.respond_to?(:fill_queue, true)
        end

        # Called when a statement was interrupted before its result. After a PREPARE or DEALLOCATE it is unknown whether
        # the server knows the statement's name, and Sequel would repeat it and fail each time. So the connection is
        # closed, and no other fiber gets it.
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
        # @return [Boolean] is the connection's query being cancelled, because the fiber that sent it was killed?
        def settling?(connection) = postgresql?(connection) && Postgresql.settling?(connection)

        # @param connection [Object]
        # @return [Boolean] whether it is open, here and on the server, and nothing is under way
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
