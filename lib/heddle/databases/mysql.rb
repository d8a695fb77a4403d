# frozen_string_literal: true

module Heddle
  module Databases
    # The common code for the drivers of MySQL and MariaDB. The protocol has no message that cancels a query, and the
    # server continues a query whose client has closed the connection. So Heddle cancels a query by a second connection,
    # over which it tells the server to kill the first one.
    module Mysql
      # Asks for the connection's number and the server's identity. The number alone is not enough: behind a load
      # balancer, the second connection may reach another server, where another client's connection has this number.
      QUESTION = "SELECT CONNECTION_ID(), CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)"

      # What is needed to kill a connection. Made when the connection is opened.
      class Link
        # @return [Integer] the connection's number on the server
        attr_reader :number

        # @return [String] the server's identity
        attr_reader :server

        # @param row [Array] the result of {QUESTION}
        # @param second [#call] opens another connection to the same server
        def initialize(row, second)
          @number = Integer(row[0])
          @server = row[1]
          @second = second
        end

        # Kills the connection, and so its query, on the server. Waits until the server confirms, at most
        # {CONFIRM_TIMEOUT} seconds. Kills nothing if the second connection has reached another server.
        #
        # @return [Boolean] false: an error, or no confirmation in time
        def kill = Databases.within(CONFIRM_TIMEOUT) { kill_from(@second.call) }

        # Without the options of the second connection, because a log must not contain the password.
        def inspect = "#<#{self.class} #{number}>"

        private

        def kill_from(other)
          link = other.heddle_unlink
          other.query("KILL CONNECTION #{number}") if link && link.server == server
        ensure
          other.close
        end
      end

      # The methods that the modules for both drivers ({Databases.driver}) have in common.
      module Driver
        # @param connection [::Mysql2::Client, ::Trilogy]
        # @return [Boolean]
        def open?(connection) = !connection.closed?

        # @param connection [::Mysql2::Client, ::Trilogy]
        # @return [Boolean] whether no query runs
        def quiet?(connection) = !connection.heddle_asking?

        # Closes the connection, and kills it on the server. If Fiber#kill is ending the calling fiber, which then can't
        # wait, another fiber kills the connection on the server.
        #
        # @param connection [::Mysql2::Client, ::Trilogy]
        # @return [void]
        def abandon(connection)
          connection.__send__(:heddle_abandon) unless connection.closed?
        end

        # @return [Boolean] false, because the connection's state is unknown after an interruption
        def recover(_connection) = false
      end

      # Included in the modules that are prepended to the drivers' connection classes.
      module Guard
        # Returns the connection's {Link} and removes it, so that the connection is not killed a second time. Also
        # called for the connection that kills others, which needs no {Link}.
        # @api private
        def heddle_unlink
          link = @heddle_link
          @heddle_link = nil
          link
        end

        # @api private
        # @return [Boolean] whether a query runs
        def heddle_asking? = @heddle_asking || false

        private

        # Runs a call of the driver. An exception that is not in `expected` has interrupted the call. Then it is unknown
        # which results will still come, so the connection is closed here and on the server.
        def heddle_guard(expected, &)
          ended = false
          @heddle_asking = true
          value = Account.wait_for(Account::QUERY, &)
          ended = true
          value
        rescue *expected
          ended = true
          raise
        ensure
          @heddle_asking = false
          heddle_abandon unless ended
        end

        def heddle_abandon
          link = heddle_unlink
          heddle_disconnect
        ensure
          heddle_kill(link) if link
        end

        def heddle_kill(link)
          elsewhere = -> { Fiber.schedule { link.kill } if Fiber.current_scheduler }
          Concurrency.unless_killed(elsewhere) { link.kill }
        end
      end
    end
  end
end
