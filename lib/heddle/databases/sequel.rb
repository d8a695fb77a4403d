# frozen_string_literal: true

require "English"
require "heddle/databases/checkouts" # not by autoload: that would wait for files with the lock of Sequel's pool
require "heddle/side_table"

module Heddle
  module Databases
    # Sequel's connections.
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

        # At the end of its block a transaction sees no error when Fiber#kill ends it, and would commit half of what the
        # block was to do.
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
        # they do so before anything is recorded. Otherwise an interrupted transaction would ask again over a closed
        # connection, or look for a missing record (NoMethodError).
        def _transaction(...)
          supports_savepoints?
          super
        end
      end

      # Prepended to the classes of pools: a connection that was closed, when its query was abandoned or by the server,
      # is replaced and not checked out.
      module ConnectionPool
        private

        # If this fiber is interrupted or killed before it has a connection, a waiting fiber gets its place in the pool.
        def acquire(owner, *server)
          interrupted = true
          connection = heddle_acquire_fit(owner, server) { super }
          interrupted = false
          connection
        rescue Exception => e
          interrupted = heddle_interruption?(e)
          raise
        ensure
          heddle_refill(*server) if interrupted
        end

        def heddle_acquire_fit(owner, server)
          while (connection = yield)
            begin
              taken = nil
              taken = heddle_taken(connection) if Sequel.fit?(connection)
              return taken if taken
            ensure
              heddle_discard(connection, owner, server) unless taken # also when interrupted amid either
            end
          end
        end

        # Sequel frees the place only after an exception, and a fiber that Fiber#kill ends runs no rescue.
        def preallocated_make_new(*server)
          ended = false
          connection = super
          ended = true
          connection
        rescue Exception
          ended = true
          raise
        ensure
          heddle_free_place(*server) unless ended
        end

        def heddle_free_place(server = 0)
          sync { (@sizes || @size)[server] -= 1 }
        end

        # Called by a pool of the kind `timed_queue` to wait.
        def wait_until_available(queue = nil, server = nil) = heddle_wait(server) { super(*[queue, server].compact) }

        # Called by a pool of the kind `threaded` to wait.
        def acquire_available(owner, *server, timeout) = heddle_wait(server.first) { super }

        def heddle_wait(server, &wait)
          scheduler = Fiber.current_scheduler
          return yield unless scheduler.is_a?(Scheduler)

          Checkouts.new(self).wait(scheduler, server, &wait)
        end

        def heddle_taken(connection)
          scheduler = Fiber.current_scheduler
          Checkouts.new(self).taken(connection, scheduler) if scheduler.is_a?(Scheduler)
          connection
        end

        def heddle_interruption?(error)
          !error.is_a?(::Sequel::Error) || error.wrapped_exception.is_a?(::Timeout::Error)
        end

        def heddle_discard(connection, owner, server)
          allocated = server.empty? ? @allocated : @allocated[server.first]
          sync { allocated.delete(owner) }
          return disconnect_acquired_connection(connection, owner, *server) unless Sequel.settling?(connection)

          heddle_run_apart do
            Sequel.settle(connection)
          ensure
            disconnect_acquired_connection(connection, owner, *server)
            heddle_refill(*server)
          end
        end

        # In a thread without a loop, or without a stack for a fiber.
        def heddle_run_apart(&work)
          Fiber.current_scheduler ? Fiber.schedule(&work) : Thread.new(&work)
        rescue FiberError
          Thread.new(&work)
        end

        # Wakes a waiting fiber, because this one may have been woken for a connection that it did not take. A pool of
        # the kind `threaded` has a condition: the fiber that is woken takes a connection, or connects itself.
        def heddle_refill(*server)
          unless respond_to?(:fill_queue, true)
            waiter = @waiter || @waiters[server.first]
            return sync { waiter.signal }
          end

          queue = @queue || @queues[server.first]
          connection = queue.pop(timeout: 0)
          connection ? queue.push(connection) : fill_queue(*server, 1)
        end

        # A pool of the kind `threaded` notes `true` in place of a connection that is being opened. It stays there when
        # Fiber#kill ends the fiber while others have the pool's mutex.
        def disconnect_connection(connection)
          return true if connection == true

          Checkouts.forget(connection)
          super
        end

        # Sequel wraps every exception of an attempt to connect in an error of its own, but an interruption is not an
        # error.
        def make_new(server)
          super
        rescue ::Sequel::DatabaseConnectionError => e
          interruption = e.wrapped_exception
          raise e if interruption.nil? || interruption.is_a?(StandardError)

          raise interruption
        end
      end

      # Prepended to Sequel's own method: its one mutex guards the list of open transactions, among others. The fiber
      # does not switch meanwhile. Were it interrupted there, its connection would go back to the pool with the
      # transaction still in the list, and the next transaction with that connection would send no BEGIN.
      module DataMutex
        def synchronize(&) = Fiber.blocking { super }
      end

      # Prepended to the classes of pools whose mutex is held for moments only, and never during a wait.
      module QueueMutex
        # A thread that fills the queue may have the mutex. The fiber does not switch meanwhile: were it interrupted or
        # killed there, it would keep a connection that it does not use, and get it again, closed or not, at its next
        # check-out. Nor is it preempted while it has the mutex, so that no fiber of the same thread can wait for it.
        def sync = Fiber.blocking { super }
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

        # Idle connections of MySQL and MariaDB that were opened before are closed: their numbers are unknown.
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

        # Changes its class, because the pool itself may be frozen.
        #
        # @param pool [::Sequel::ConnectionPool]
        # @return [void]
        def prepare_pool(pool)
          return if %i[single sharded_single].include?(pool.pool_type)

          pool.class.prepend(ConnectionPool)
          pool.class.prepend(QueueMutex) if pool.respond_to?(:fill_queue, true)
        end

        # A statement was interrupted before its result. After a PREPARE or DEALLOCATE it is unknown whether the server
        # knows the name, and Sequel would repeat it and fail each time. So no other fiber gets the connection.
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
        # @return [Boolean] does a fiber cancel its query because its user was killed?
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
