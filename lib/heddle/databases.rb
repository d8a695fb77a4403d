# frozen_string_literal: true

require "heddle/runtime"
require "heddle/side_table"
require "timeout"

module Heddle
  # Settles the queries that a task has abandoned, because it was cancelled, its time limit has passed, or its client
  # has left. The database server stops computing, and no fiber gets the connection before that is certain. {install}
  # prepares the drivers and pools that are loaded; Heddle.run, the server and {Pool} call it.
  #
  # PostgreSQL cancels the query and keeps the connection. The protocol of MySQL and MariaDB has no such message: the
  # connection is closed, and a second one kills it on the server.
  #
  # @api private
  module Databases
    # Seconds that the server may take to confirm that it has stopped; then the connection is closed.
    CONFIRM_TIMEOUT = 0.5

    Autoloads.add(self, "heddle/databases")

    # The drivers by the name of the connection's class, which is looked up without loading the driver.
    DRIVERS = { "PG::Connection" => :Postgresql, "Trilogy" => :Trilogy, "Mysql2::Client" => :Mysql2 }.freeze
    # Drivers whose own class has to be changed.
    CHANGED = { Trilogy: :trilogy, Mysql2: :mysql2 }.freeze
    private_constant :DRIVERS, :CHANGED

    class << self
      # Prepares the drivers and the pools of Active Record and Sequel that are loaded. Idempotent.
      #
      # @return [void]
      def install
        Trilogy.install if defined?(::Trilogy) && Adaptations.adapt?(:trilogy)
        Mysql2.install if defined?(::Mysql2::Client) && Adaptations.adapt?(:mysql2)
        install_active_record if defined?(::ActiveSupport::LazyLoadHooks)
        install_sequel if defined?(::Sequel::Database)
      end

      # {install}, and everything else that a server needs with requests in fibers.
      #
      # @param fibers [Boolean]
      # @return [void]
      def start(fibers:)
        install
        Sequel.isolate if fibers && defined?(::Sequel::Database)
      end

      # @return [Boolean, nil] may a fiber still have a permanent lease of Active Record when its work has ended?
      #   In a Rails application Rails ends the leases.
      attr_reader :leases

      # Ends the permanent leases of the calling fiber, whose request or callback has ended. Otherwise a fiber that only
      # waits for its next request would keep the connections.
      #
      # @yieldparam error [StandardError] of the database
      # @return [void]
      def end_leases
        ::ActiveRecord::Base.connection_handler.clear_active_connections!(:all)
      rescue StandardError => e
        yield e
      end

      # @param connection [Object] a connection of pg, trilogy or mysql2, or anything else
      # @return [Module, nil] the driver's module, with `open?`, `alive?`, `clean` and `recover`, which take the
      #   connection; nil for anything that is not a connection of these drivers
      def driver(connection)
        driver = DRIVERS[connection.class.name] || inherited_driver(connection.class)
        const_get(driver) if driver && (!CHANGED.key?(driver) || Adaptations.adapt?(CHANGED[driver]))
      end

      # @param connection [Object, nil] a connection of a driver
      # @return [Boolean] whether it is open and waits for no answer; false if that is not known
      def quiet?(connection)
        driver = connection && driver(connection)
        !driver.nil? && driver.open?(connection) && driver.quiet?(connection)
      end

      # @return [Boolean] does the application run in development?
      def development? = [nil, "development"].include?(ENV["RAILS_ENV"] || ENV.fetch("RACK_ENV", nil))

      # Runs the block with a time limit, in a loop or in a thread without one.
      #
      # @param seconds [Numeric]
      # @return [Boolean] true if the block has ended; false if the time limit has passed, or the driver raised an error
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

      # Active Record's adapters are loaded when the application first needs them.
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
