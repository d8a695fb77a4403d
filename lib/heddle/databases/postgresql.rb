# frozen_string_literal: true

module Heddle
  module Databases
    # Ends abandoned queries of the gem pg: cancels them, and reads the rest of their results. libpq reports whether a
    # query runs, so nothing needs to be recorded.
    module Postgresql
      # Seconds between a cancel request and the next one. Their sum is less than {CONFIRM_TIMEOUT}.
      PAUSES = [0.05, 0.1, 0.2].freeze
      # States in which the server waits for the client.
      QUIET = [::PG::PQTRANS_IDLE, ::PG::PQTRANS_INTRANS, ::PG::PQTRANS_INERROR].freeze
      # Does libpq support pipeline mode? It does since version 14.
      PIPELINE = ::PG::Connection.method_defined?(:pipeline_status)
      # connection => a queue that is closed when the fiber that settles the connection has ended
      SETTLEMENTS = SideTable.new(:heddle_settlements)
      private_constant :PAUSES, :QUIET, :PIPELINE

      class << self
        # @return [void]
        def install = nil

        # @param connection [PG::Connection]
        # @return [Boolean]
        def open?(connection) = !connection.finished?

        # @param connection [PG::Connection]
        # @return [Boolean] false: a query runs, or its result was not read
        def settled?(connection)
          connection.finished? || connection.transaction_status != ::PG::PQTRANS_ACTIVE
        end

        # @param connection [PG::Connection]
        # @return [Boolean] whether it is in a transaction, or a query runs
        def transaction?(connection)
          !connection.finished? && connection.transaction_status != ::PG::PQTRANS_IDLE
        end

        # @param connection [PG::Connection] an open connection
        # @return [Boolean] whether it is connected and no query runs
        def quiet?(connection) = QUIET.include?(connection.transaction_status)

        # Checks the socket without sending anything.
        #
        # @param connection [PG::Connection] an idle connection
        # @return [Boolean] false: the server has closed it
        def alive?(connection)
          # Reads twice, because the server may have sent an error message before it closed the connection.
          2.times { connection.consume_input }
          true
        rescue ::PG::Error
          false
        end

        # Cancels the running query and reads the rest of its result. Closes the connection if the server does not
        # confirm in time.
        #
        # @param connection [PG::Connection]
        # @yield [connection] called if Fiber#kill is ending the calling fiber, which can't wait; this method then does
        #   not return. Without a block, another fiber settles the connection.
        # @return [Boolean] whether the connection can be used; it may be in a transaction
        def settle(connection)
          SETTLEMENTS[connection]&.pop # waits for another fiber that settles it
          return !connection.finished? if settled?(connection)
          return stop(connection) unless Fiber.current_scheduler

          killed = -> { block_given? ? yield(connection) : abandon(connection) }
          Concurrency.unless_killed(killed) { stop(connection) }
        end

        # Starts a fiber that ends the connection's running query and open transaction. Until that fiber is done,
        # calls of {settle} in other fibers wait for it. If the fiber can't be started, the connection is closed.
        #
        # @param connection [PG::Connection]
        # @yield called in that fiber when the connection is settled or closed
        # @return [void]
        # @raise [FiberError] if there is no memory for the stack of a fiber
        def abandon(connection, &)
          return if connection.finished? || settling?(connection)

          settlement = Thread::Queue.new
          SETTLEMENTS[connection] = settlement
          begin
            Fiber.schedule { settle_abandoned(connection, settlement, &) }
          rescue Exception
            close(connection)
            end_settlement(connection, settlement)
            raise
          end
        end

        # @param connection [PG::Connection]
        # @return [Boolean] whether a fiber that {abandon} has started uses it
        def settling?(connection) = !SETTLEMENTS[connection].nil?

        # Ends the pipeline mode that the last user may have begun, and in which the next user could send no ordinary
        # query. If libpq refuses because results are pending, the connection is closed.
        #
        # @param connection [PG::Connection] a settled connection
        # @return [Boolean] whether the connection can be used
        def leave_pipeline(connection)
          return true if !PIPELINE || connection.pipeline_status == ::PG::PQ_PIPELINE_OFF

          connection.exit_pipeline_mode
          true
        rescue ::PG::Error
          close(connection)
          false
        end

        # Ends the running query, the pipeline mode and the open transaction of the last user.
        #
        # @param connection [PG::Connection]
        # @return [Boolean] whether another fiber can use the connection; if not, it is closed
        def clean(connection) = settle(connection) && leave_pipeline(connection) && end_transaction(connection)
        alias recover clean

        private

        def settle_abandoned(connection, settlement)
          (settled?(connection) || stop(connection)) && end_transaction(connection)
          yield if block_given?
        ensure
          end_settlement(connection, settlement)
        end

        def end_settlement(connection, settlement)
          SETTLEMENTS.delete(connection)
          settlement.close
        end

        def stop(connection) = attempt(connection) { cancel(connection) }

        def end_transaction(connection)
          return true if connection.transaction_status == ::PG::PQTRANS_IDLE

          attempt(connection) { connection.async_exec("ROLLBACK") }
        end

        # Runs the block with a time limit. Closes the connection if the block fails or leaves it in an unknown state,
        # or if this fiber is interrupted.
        def attempt(connection, &)
          done = Databases.within(CONFIRM_TIMEOUT, &) && usable?(connection)
        ensure
          close(connection) unless done
        end

        # A cancel request that the server handles before the query has begun has no effect. So it is repeated while the
        # query runs.
        def cancel(connection)
          PAUSES.each do |seconds|
            connection.cancel
            break if Databases.within(seconds) { connection.discard_results }
          end
          await_late_cancel(connection)
        end

        # The query may have ended before the cancel request arrived. When `connection.cancel` returns, the server has
        # sent a signal to the connection's backend process, but that process may not have handled it yet. The signal
        # must cancel the empty query that this method sends, rather than a query of the connection's next user. Several
        # pending signals have the effect of one.
        def await_late_cancel(connection)
          connection.async_exec("")
        rescue ::PG::QueryCanceled
          connection.async_exec("")
        end

        def usable?(connection)
          !connection.finished? && settled?(connection) && connection.status == ::PG::CONNECTION_OK &&
            connection.transaction_status != ::PG::PQTRANS_UNKNOWN
        end

        def close(connection)
          connection.close unless connection.finished?
        rescue ::PG::Error
          nil # the server has already closed it
        end
      end
    end
  end
end
