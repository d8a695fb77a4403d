# frozen_string_literal: true

require "heddle/databases/mysql"

module Heddle
  module Databases
    # Ends abandoned queries of the gem trilogy: closes their connections here and on the server.
    module Trilogy
      extend Mysql::Driver

      # Exceptions that the driver itself raises. After one of these, the state of the connection is known.
      EXPECTED = [::Trilogy::Error, TypeError, EncodingError].freeze
      # Methods that wait for the server.
      METHODS = %i[query ping next_result abandon_results! change_db set_server_option].freeze
      # To find the driver's descriptor, Heddle tries the expected number and this many numbers above it.
      NEAR = 16
      private_constant :EXPECTED, :METHODS, :NEAR

      # Prepended to Trilogy.
      module Guard
        include Mysql::Guard

        def initialize(...)
          super
          heddle_link
        end

        # @api private
        # @return [Boolean] false: the server has closed the socket, or has sent something unexpected
        def heddle_silent?
          return false unless check
          return true unless @heddle_descriptor

          socket = IO.for_fd(@heddle_descriptor, autoclose: false)
          heddle_identity(socket) == @heddle_identity && Fiber.blocking { socket.wait_readable(0) }.nil?
        rescue SystemCallError, ArgumentError
          false # the socket was closed after an error, but trilogy does not report it as closed
        end

        METHODS.each { |name| define_method(name) { |*arguments| heddle_guard(EXPECTED) { super(*arguments) } } }

        private

        # Trilogy's Ruby code calls this method. Trilogy duplicates the socket and does not reveal the new descriptor.
        # It is the lowest free number, or a little higher if other threads open files at the same time.
        def _connect(socket, *)
          free = socket.dup
          number = free.fileno
          free.close
          super
          @heddle_identity = heddle_identity(socket)
          @heddle_descriptor = (number..(number + NEAR)).find { |one| one != socket.fileno && heddle_same?(one) }
        end

        def heddle_same?(number)
          heddle_identity(IO.for_fd(number, autoclose: false)) == @heddle_identity
        rescue SystemCallError, ArgumentError # no descriptor has this number, or Ruby uses it internally
          false
        end

        def heddle_identity(socket) = socket.stat.then { |stat| [stat.dev, stat.ino] }

        def heddle_link
          row = query(Mysql::QUESTION).rows.first
          @heddle_link = Mysql::Link.new(row, -> { self.class.new(heddle_second_options) })
        rescue ::Trilogy::ProtocolError
          @heddle_link = nil # a proxy does not support the statement
        end

        def heddle_second_options
          connection_options.merge(connect_timeout: CONFIRM_TIMEOUT, read_timeout: CONFIRM_TIMEOUT,
                                   write_timeout: CONFIRM_TIMEOUT)
        end

        # Closes the socket without COM_QUIT, which the server would read only after the query.
        def heddle_disconnect = discard!
      end

      class << self
        # @return [void]
        def install = ::Trilogy.prepend(Guard)

        # Checks the socket without sending anything, and without switching fibers.
        #
        # @param connection [::Trilogy] an idle connection
        # @return [Boolean] false: the server has closed it, or is about to close it
        def alive?(connection)
          return false if connection.closed?

          connection.is_a?(Guard) ? connection.heddle_silent? : connection.check
        rescue ::Trilogy::Error
          false
        end

        # Rolls back an open transaction.
        #
        # @param connection [::Trilogy]
        # @return [Boolean] whether another fiber can use the connection
        def clean(connection)
          return false if connection.closed? || connection.more_results_exist?
          return true unless connection.in_transaction?

          Databases.within(CONFIRM_TIMEOUT) { connection.query("ROLLBACK") }
        end
      end
    end
  end
end
