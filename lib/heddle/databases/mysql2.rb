# frozen_string_literal: true

require "heddle/databases/mysql"

module Heddle
  module Databases
    # Connections of the gem mysql2.
    module Mysql2
      extend Mysql::Driver

      # Exceptions of the driver itself, after which it knows the state of its connection.
      EXPECTED = [::Mysql2::Error, TypeError, EncodingError].freeze
      # Whole seconds; the driver takes no fractions.
      TIMES = { connect_timeout: 1, read_timeout: 1, write_timeout: 1 }.freeze
      # The driver protects a query from Timeout.timeout, because a connection with an unread answer can't be used.
      # Heddle closes such a connection, so a time limit may interrupt the query.
      INTERRUPTIBLE = { ::Mysql2::Util::TIMEOUT_ERROR_CLASS => :immediate }.freeze
      private_constant :EXPECTED, :TIMES, :INTERRUPTIBLE

      # Prepended to Mysql2::Client.
      module Guard
        include Mysql::Guard

        # The driver forgets the password, so the options are kept where no `inspect` shows them. It connects without
        # calling the scheduler, so an offload thread opens the second connection.
        def initialize(options = {})
          super
          again = options.merge(TIMES)
          row = query(Mysql::QUESTION, as: :array, stream: false).first
          @heddle_link = Mysql::Link.new(row, -> { Heddle.offload { self.class.new(again) } })
        rescue ::Mysql2::Error
          raise if closed? # else it is a proxy that does not support the statement
        end

        def query(*, **) = heddle_guard(EXPECTED) { super }

        # @api private
        # @return [Boolean] is the rest of a streamed result still to come? Until then the server takes no query.
        def heddle_streaming? = !@heddle_stream.nil? && !@heddle_stream.heddle_read?

        private

        # Called by `query` of the driver.
        #
        # @param options [Hash] the client's options and this query's
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

        # The driver has closed it already when the wait for an answer was interrupted.
        def heddle_disconnect = close
      end

      # Prepended to Mysql2::Result, which does not report whether a streamed result was read to its end.
      module Result
        # Reading this many rows of a few columns takes about a millisecond.
        SMALL = 1_000
        private_constant :SMALL

        # @api private
        # @return [Boolean] is it the answer to a query, and in the client's memory? The rows of a prepared statement
        #   belong to the statement, which may be closed.
        attr_writer :heddle_stored

        # @api private
        # @return [Boolean]
        def heddle_read? = @heddle_read || false

        # The driver reads each row with a native call, which takes less time than offloading it. So a small result is
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

        # The driver keeps the rows; to read them again without a block fails.
        def heddle_read_in_place(&)
          @heddle_read = true
          Heddle.without_offload(&)
        end

        # @param options [Hash] of this reading
        # @return [Boolean] are there few rows, which the driver keeps, and none was read yet?
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

        # Checks the socket without asking the server, and lets no other fiber run meanwhile.
        #
        # @param connection [::Mysql2::Client] an idle one
        # @return [Boolean] false if the server has closed it, is about to close it, or has sent something
        def alive?(connection)
          return false if streaming?(connection)

          socket = IO.for_fd(connection.socket, autoclose: false)
          Fiber.blocking { socket.wait_readable(0) }.nil?
        rescue ::Mysql2::Error
          false
        end

        # @param connection [::Mysql2::Client]
        # @return [Boolean] whether the connection can be given to another fiber
        def clean(connection) = !connection.closed? && !streaming?(connection)

        # @param connection [::Mysql2::Client]
        # @return [Boolean] was a streamed result left before its end?
        def streaming?(connection) = connection.is_a?(Guard) && connection.heddle_streaming?
      end
    end
  end
end
