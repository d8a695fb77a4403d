# frozen_string_literal: true

module Heddle
  module Databases
    # Shared by the drivers of MySQL and MariaDB. The protocol can't cancel a query, and the server continues to compute
    # for a client that has closed its connection. So a second connection kills the first one.
    module Mysql
      # The connection's number, and the server's identity: behind a balancer the second connection may reach another
      # server, where the number is another client's.
      QUESTION = "SELECT CONNECTION_ID(), CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)"

      # Kept with each connection from its beginning.
      class Link
        # @return [Integer] the connection's number
        attr_reader :number

        # @return [String] its server
        attr_reader :server

        # @param row [Array] the answer to {QUESTION}
        # @param second [#call] opens another connection to the same server
        def initialize(row, second)
          @number = Integer(row[0])
          @server = row[1]
          @second = second
        end

        # Ends the connection on the server, and so its query. Waits until the server confirms, for {CONFIRM_TIMEOUT} at
        # most.
        #
        # @return [Boolean] whether the server has confirmed
        def kill = Databases.within(CONFIRM_TIMEOUT) { kill_from(@second.call) }

        # A log must not contain the password.
        def inspect = "#<#{self.class} #{number}>"

        private

        def kill_from(other)
          link = other.heddle_unlink
          other.query("KILL CONNECTION #{number}") if link && link.server == server
        ensure
          other.close
        end
      end

      # The methods that {Databases.driver} needs of each driver.
      module Driver
        # @param connection [::Mysql2::Client, ::Trilogy]
        # @return [Boolean]
        def open?(connection) = !connection.closed?

        # @param connection [::Mysql2::Client, ::Trilogy]
        # @return [Boolean] whether no fiber waits for an answer
        def quiet?(connection) = !connection.heddle_asking?

        # Closes the connection, and lets another fiber kill it on the server. Does not wait.
        #
        # @param connection [::Mysql2::Client, ::Trilogy]
        # @return [void]
        def abandon(connection)
          connection.__send__(:heddle_abandon) unless connection.closed?
        end

        # @return [Boolean] false: after an interruption, the connection's state is unknown
        def recover(_connection) = false
      end

      # Prepended to the driver's connection class.
      module Guard
        # Marks the second connection, which kills others, so that it is not killed itself.
        # @api private
        def heddle_unlink
          link = @heddle_link
          @heddle_link = nil
          link
        end

        # @api private
        # @return [Boolean] does a fiber wait for the server's answer?
        def heddle_asking? = @heddle_asking || false

        private

        # Runs a call of the driver. An exception that is not the driver's own has interrupted the call. Then it is
        # unknown which results are still to come, so the connection is closed, here and on the server.
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
