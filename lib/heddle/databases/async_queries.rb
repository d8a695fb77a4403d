# frozen_string_literal: true

module Heddle
  module Databases
    # Runs Active Record's asynchronous queries (`load_async`, `async_count` …) in tasks of the loop, unless the
    # application has configured a thread executor (`config.active_record.async_query_executor`).
    module AsyncQueries
      # Prepended to Active Record's connections.
      module Connection
        def async_enabled? = super || (supports_concurrent_connections? && AsyncQueries.possible?)
      end

      # Prepended to Active Record's pool.
      module ConnectionPool
        # Runs the query in a task. If the task gets no connection in time, the query has not begun when its result is
        # needed. Then the fiber that needs the result runs the query itself.
        def schedule_query(future)
          return super unless AsyncQueries.possible?

          Heddle.async(name: "asynchronous query", background: true) do
            future.execute_or_skip
          rescue StandardError
            nil
          end
        end
      end

      # Prepended to Active Record's future results. If the task of a query was cancelled or killed, the fiber that
      # needs the result runs the query again. Without this, Active Record would return nil.
      module FutureResult
        private

        def execute_query(...)
          ended = false
          super
          ended = true
        ensure
          @pending = true unless ended
        end
      end

      class << self
        # @return [void]
        def install
          ::ActiveRecord::FutureResult.prepend(FutureResult)
          ::ActiveRecord::ConnectionAdapters::AbstractAdapter.prepend(Connection)
          ::ActiveRecord::ConnectionAdapters::ConnectionPool.prepend(ConnectionPool)
        end

        # @return [Boolean] whether this fiber's asynchronous queries can run in tasks. As with a thread executor, this
        #   is possible only within a request or job. The tasks end with the request or job.
        def possible?
          ::ActiveRecord.async_query_executor.nil? && Fiber.current_scheduler.is_a?(Scheduler) &&
            ::ActiveSupport::IsolatedExecutionState.isolation_level == :fiber && session?
        end

        private

        def session?
          ::ActiveRecord::Base.asynchronous_queries_tracker.current_session
          true
        rescue ::ActiveRecord::ActiveRecordError
          false
        end
      end
    end
  end
end
