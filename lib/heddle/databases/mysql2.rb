# frozen_string_literal: true

require "heddle/databases/mysql"

module Heddle
  module Databases
    # Ends abandoned queries of the gem mysql2: closes their connections here and on the server.
    module Mysql2
      extend Mysql::Driver

      # Exceptions that the driver itself raises. After one of these, the state of the connection is known.
      EXPECTED = [::Mysql2::Error, TypeError, EncodingError].freeze
      # The time limits of the second connection (see {Mysql}), in whole seconds: the driver allows no fractions.
      TIMES = { connect_timeout: 1, read_timeout: 1, write_timeout: 1 }.freeze
      # The driver defers Timeout.timeout during a query, because a connection with an unread result can't be used.
      # Heddle closes such a connection, so it allows time limits to interrupt the query.
      INTERRUPTIBLE = { ::Mysql2::Util::TIMEOUT_ERROR_CLASS => :immediate }.freeze
      private_constant :EXPECTED, :TIMES, :INTERRUPTIBLE

      # Prepended to Mysql2::Client.
      module Guard
        include Mysql::Guard

        # Keeps the options for the second connection, because the driver drops the password. They are in a Proc, so
        # that no `inspect` shows them. The driver connects without calling the scheduler, so an offload thread opens
        # the second connection.
        def initialize(options = {})
          super
          again = options.merge(TIMES)
          row = query(Mysql::QUESTION, as: :array, stream: false).first
          @heddle_link = Mysql::Link.new(row, -> { Heddle.offload { self.class.new(again) } })
        rescue ::Mysql2::Error
          raise if closed? # if it is open, the error comes from a proxy that does not support the statement
        end

        def query(*, **) = heddle_guard(EXPECTED) { super }

        # @api private
        # @return [Boolean] whether a streamed result is not read to its end; until then, no other query can be sent
        def heddle_streaming? = !@heddle_stream.nil? && !@heddle_stream.heddle_read?

        private

        # The driver's `query` calls this method.
        #
        # @param options [Hash] the options of the client and of this query
        def _query(_sql, options)
          result = heddle_interruptible { super }
          streamed = options[:stream] == true
          @heddle_stream = (result if streamed)
          result.heddle_stored = !streamed if result
          result
        end

        def heddle_interruptible(&)
          return yield unless Fiber.current_scheduler.is_a?(Scheduler)

          Thread.handle_interrupt(INTERRUPTIBLE, &)
        end

        # If the wait for a result was interrupted, the driver has already closed the connection. Then `close` has no
        # effect.
        def heddle_disconnect = close
      end

      # Prepended to Mysql2::Result, which does not report whether a streamed result was read to its end.
      module Result
        # Maximum number of rows to read in place. Reading this many rows of a few columns takes about a millisecond.
        SMALL = 1_000
        private_constant :SMALL

        # @api private
        # @return [Boolean] whether the rows are in the client's memory, and do not belong to a prepared statement,
        #   which may be closed
        attr_writer :heddle_stored

        # @api private
        # @return [Boolean] whether the result was read to its end
        def heddle_read? = @heddle_read || false

        # The driver reads each row with a native call. Offloading takes longer than such a call. So a small result is
        # read in place, before the block gets the first row.
        def each(*arguments, **options, &block)
          rows = heddle_read_in_place { super(*arguments, **options, &nil) } if heddle_small?(options)
          value = rows && !block ? rows : super
          @heddle_read = true
          value
        end

        def free
          super
          @heddle_read = true # the driver has read the rest
          nil
        end

        private

        # Marks the result as read, so that no later call reads it in place again: once the driver has cached all rows,
        # its `each` fails if it is called without a block.
        def heddle_read_in_place(&)
          @heddle_read = true
          Heddle.without_offload(&)
        end

        # @param options [Hash] the options of `each`
        # @return [Boolean] whether the result has few rows, the driver keeps these rows, and none of them was read yet
        def heddle_small?(options)
          @heddle_stored && !@heddle_read && Fiber.current_scheduler.is_a?(Scheduler) &&
            options.fetch(:cache_rows, @query_options[:cache_rows]) && count <= SMALL
        end
      end

      class << self
        # @return [void]
        def install
          ::Mysql2::Client.prepend(Guard)
          ::Mysql2::Result.prepend(Result)
        end

        # Checks the socket without sending anything, and without switching fibers.
        #
        # @param connection [::Mysql2::Client] an idle connection
        # @return [Boolean] false: the server has closed it, is about to close it, or has sent something; or a streamed
        #   result was not read to its end
        def alive?(connection)
          return false if streaming?(connection)

          socket = IO.for_fd(connection.socket, autoclose: false)
          Fiber.blocking { socket.wait_readable(0) }.nil?
        rescue ::Mysql2::Error
          false
        end

        # @param connection [::Mysql2::Client]
        # @return [Boolean] whether another fiber can use the connection
        def clean(connection) = !connection.closed? && !streaming?(connection)

        # @param connection [::Mysql2::Client]
        # @return [Boolean] whether a streamed result was not read to its end
        def streaming?(connection) = connection.is_a?(Guard) && connection.heddle_streaming?
      end
    end
  end
end
