# frozen_string_literal: true

require "heddle/runtime"
require "heddle/side_table"
require "timeout"

module Heddle
  # Cancels the queries that a task has abandoned, because the task was cancelled, its time limit has passed, or the
  # client of its request has disconnected. No other fiber gets the connection until the database server has confirmed
  # that the query has ended. To *settle* a query or a connection means to cancel the query and wait for this
  # confirmation. {install} changes the loaded drivers and pools accordingly. The server and {Pool} call {install}, and
  # so does Heddle.run if Active Record or Sequel is loaded.
  #
  # With PostgreSQL, Heddle sends a cancel request and keeps the connection. The protocol of MySQL and MariaDB has no
  # cancel request, so Heddle closes the connection, and opens a second one to kill the first on the server.
  #
  # @api private
  module Databases
    # Seconds to wait for the database server's confirmation. After that the connection is closed.
    CONFIRM_TIMEOUT = 0.5

    Autoloads.add(self, "heddle/databases")

    # The drivers, by the names of their connection classes: a lookup by name loads no driver.
    DRIVERS = { "PG::Connection" => :Postgresql, "Trilogy" => :Trilogy, "Mysql2::Client" => :Mysql2 }.freeze
    # Drivers whose connection class Heddle changes, and their names in the option `adapt`.
    CHANGED = { Trilogy: :trilogy, Mysql2: :mysql2 }.freeze
    private_constant :DRIVERS, :CHANGED

    class << self
      # Changes the loaded drivers, and the pools of Active Record and Sequel. Idempotent.
      #
      # @return [void]
      def install
        Trilogy.install if defined?(::Trilogy) && Adaptations.adapt?(:trilogy)
        Mysql2.install if defined?(::Mysql2::Client) && Adaptations.adapt?(:mysql2)
        install_active_record if defined?(::ActiveSupport::LazyLoadHooks)
        install_sequel if defined?(::Sequel::Database)
      end

      # Calls {install}. If requests run in fibers, makes Sequel's connections belong to fibers instead of threads.
      #
      # @param fibers [Boolean] whether requests run in fibers
      # @return [void]
      def start(fibers:)
        install
        Sequel.isolate if fibers && defined?(::Sequel::Database)
      end

      # @return [true, nil] true: a fiber may still hold a permanent lease of an Active Record connection when its work
      #   has ended. nil: Active Record is not loaded, or this is a Rails application, in which Rails ends the leases
      attr_reader :leases

      # Ends the permanent leases of the calling fiber, whose request or callback has ended. Otherwise a pooled fiber
      # would hold the connections while it waits for its next request.
      #
      # @yieldparam error [StandardError] an error of the database
      # @return [void]
      def end_leases
        ::ActiveRecord::Base.connection_handler.clear_active_connections!(:all)
      rescue StandardError => e
        yield e
      end

      # @param connection [Object] a connection of pg, trilogy or mysql2, or anything else
      # @return [Module, nil] the driver's module, with the methods `open?`, `alive?`, `quiet?`, `clean` and `recover`,
      #   whose argument is the connection; nil if the object is not a connection of these drivers, or if the option
      #   `adapt` excludes the driver
      def driver(connection)
        driver = DRIVERS[connection.class.name] || inherited_driver(connection.class)
        const_get(driver) if driver && (!CHANGED.key?(driver) || Adaptations.adapt?(CHANGED[driver]))
      end

      # @param connection [Object, nil] a connection of a driver
      # @return [Boolean] whether it is open and no query is running on it; false if this is unknown
      def quiet?(connection)
        driver = connection && driver(connection)
        !driver.nil? && driver.open?(connection) && driver.quiet?(connection)
      end

      # @return [Boolean] whether RAILS_ENV, or else RACK_ENV, is "development"; true if neither is set
      def development? = [nil, "development"].include?(ENV["RAILS_ENV"] || ENV.fetch("RACK_ENV", nil))

      # Runs the block with a time limit, in an event loop or in a thread without one.
      #
      # @param seconds [Numeric]
      # @return [Boolean] true if the block has ended; false if the time limit has passed, or the block raised an error
      def within(seconds, &block)
        if Fiber.current_scheduler.is_a?(Scheduler)
          Heddle.timeout(seconds, &block)
        else
          Timeout.timeout(seconds, TimeoutError, &block)
        end
        true
      rescue StandardError
        false
      end

      private

      def inherited_driver(type)
        found = type.ancestors.find { |ancestor| DRIVERS.key?(ancestor.name) }
        DRIVERS[found.name] if found
      end

      # Changes Active Record as soon as it is loaded, which may be later.
      def install_active_record
        return if @active_record

        @active_record = true
        ::ActiveSupport.on_load(:active_record) do
          Databases::ActiveRecord.install if Adaptations.adapt?(:activerecord)
          Databases.instance_variable_set(:@leases, true) unless defined?(::Rails::Railtie)
        end
      end

      def install_sequel
        return if @sequel

        @sequel = true
        Sequel.install if Adaptations.adapt?(:sequel)
      end
    end
  end
end
