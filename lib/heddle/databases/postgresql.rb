# frozen_string_literal: true

module Heddle
  module Databases
    # Connections of the gem pg. libpq knows whether a query is under way, so nothing has to be recorded beforehand.
    module Postgresql
      # Seconds after a cancel request until the next one. Together less than {CONFIRM_TIMEOUT}.
      PAUSES = [0.05, 0.1, 0.2].freeze
      # States in which the server waits for the client.
      QUIET = [::PG::PQTRANS_IDLE, ::PG::PQTRANS_INTRANS, ::PG::PQTRANS_INERROR].freeze
      # Has libpq pipeline mode? Since 14.
      PIPELINE = ::PG::Connection.method_defined?(:pipeline_status)
      # By connection: a queue that is closed when the fiber that settles the connection has ended.
      SETTLEMENTS = SideTable.new(:heddle_settlements)
      private_constant :PAUSES, :QUIET, :PIPELINE

      class << self
        # @return [void]
        def install = nil

        # @param connection [PG::Connection]
        # @return [Boolean]
        def open?(connection) = !connection.finished?

        # @param connection [PG::Connection]
        # @return [Boolean] false while the server still owes the result of a query
        def settled?(connection)
          connection.finished? || connection.transaction_status != ::PG::PQTRANS_ACTIVE
        end

        # @param connection [PG::Connection]
        # @return [Boolean] is it in a transaction, or is a query under way?
        def transaction?(connection)
          !connection.finished? && connection.transaction_status != ::PG::PQTRANS_IDLE
        end

        # @param connection [PG::Connection] an open one
        # @return [Boolean] whether it is connected and no query is under way
        def quiet?(connection) = QUIET.include?(connection.transaction_status)

        # Checks the socket without asking the server.
        #
        # @param connection [PG::Connection] an idle one
        # @return [Boolean] false where the server has closed it
        def alive?(connection)
          2.times { connection.consume_input } # the server may have sent the reason before the end of the stream
          true
        rescue ::PG::Error
          false
        end

        # Cancels the query that is under way and reads what is left of its result. When the server does not confirm
        # in time, the connection is closed.
        #
        # @param connection [PG::Connection]
        # @yield [connection] instead of waiting, if Fiber#kill is ending the calling fiber, which can't wait; then this
        #   method does not return. Without a block, another fiber settles the connection.
        # @return [Boolean] whether the connection can be used; it may be in a transaction
        def settle(connection)
          SETTLEMENTS[connection]&.pop # another fiber settles it already
          return !connection.finished? if settled?(connection)
          return stop(connection) unless Fiber.current_scheduler

          killed = -> { block_given? ? yield(connection) : abandon(connection) }
          Concurrency.unless_killed(killed) { stop(connection) }
        end

        # Starts a fiber that ends what this one has left: a running query or an open transaction. Until it has ended,
        # {settle} waits for it in any other fiber. Where it can't be started, the connection is closed.
        #
        # @param connection [PG::Connection]
        # @yield in that fiber, when the connection is settled, or closed
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
        # @return [Boolean] does a fiber that {abandon} has started use it?
        def settling?(connection) = !SETTLEMENTS[connection].nil?

        # Leaves the pipeline mode of the last user, in which the next one could send no query. libpq refuses that while
        # results are still to come; then the connection is closed.
        #
        # @param connection [PG::Connection] a settled one
        # @return [Boolean] whether the connection can be used
        def leave_pipeline(connection)
          return true if !PIPELINE || connection.pipeline_status == ::PG::PQ_PIPELINE_OFF

          connection.exit_pipeline_mode
          true
        rescue ::PG::Error
          close(connection)
          false
        end

        # Ends what the last user left: a running query, pipeline mode, an open transaction.
        #
        # @param connection [PG::Connection]
        # @return [Boolean] whether the connection can be given to another fiber; if not, it is closed
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

        # Closes the connection unless the block ends in time and leaves it in a known state, also when this fiber is
        # interrupted again.
        def attempt(connection, &)
          done = Databases.within(CONFIRM_TIMEOUT, &) && usable?(connection)
        ensure
          close(connection) unless done
        end

        # A cancel request that arrives before the query cancels nothing, as the backend does nothing yet. So it is
        # repeated while the query runs.
        def cancel(connection)
          PAUSES.each do |seconds|
            connection.cancel
            break if Databases.within(seconds) { connection.discard_results }
          end
          await_late_cancel(connection)
        end

        # The query may have ended before the cancel request arrived. The server has sent its signal when `cancel`
        # returns, but the backend may not have seen it: it must cancel this empty query, not the next user's. Several
        # pending signals are one.
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
          nil # the server has closed it
        end
      end
    end
  end
end
