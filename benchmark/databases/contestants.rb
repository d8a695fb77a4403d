# frozen_string_literal: true

require_relative "queries"
require_relative "contestants/concurrency"
require_relative "contestants/drivers"

module Bench
  module Databases
    # A way to run work concurrently, with a driver or pool.
    class Contestant < Bench::Contestant
      attr_reader :key, :label

      # @param concurrency [Concurrency::Blocking]
      # @param driver [Drivers::Driver]
      def initialize(key, label, concurrency, driver)
        super()
        @key, @label, @concurrency, @driver = key, label, concurrency, driver
      end

      # @return [Symbol] :postgresql or :mariadb
      def database = @driver.database

      def role = @concurrency.role

      # @return [Boolean] one query after the other
      def blocking? = role == :baseline

      # @return [Boolean] whether its pool has a limit that finds itself
      def finds_limit? = @driver.finds_limit?

      def prepare
        @concurrency.prepare
        prepare_driver
      end

      # Loads the driver alone: a server brings its own concurrency.
      def prepare_driver = @driver.prepare(fibers: @concurrency.fibers?)

      def version = [@concurrency.version, @driver.version].join(", ")

      def run(&) = @concurrency.run(&)

      # @param place [Hash] where the database is, as {Servers} says it
      # @param connections [Integer, :auto]
      # @param patience [Numeric] seconds that a query waits for a connection
      def open(place, connections:, patience: Drivers::PATIENCE)
        @driver.open(place, blocking? ? 1 : connections, patience)
      end

      # @param place [Hash]
      # @param connections [Integer] how many it may have; a server with threads has as many threads
      # @return [Served] the server that runs requests in the same way
      def served(place, connections:)
        server = @concurrency.server(config: Served::CONFIG, threads: connections)
        Served.new(key, server, place, connections, @concurrency.server_environment)
      end

      # @return [Integer] the first value of the first row
      def query(sql) = @driver.query(sql).to_i

      # Calls the block for each item, concurrently. Within `run`.
      #
      # @param workers [Integer] threads, where there is not a fiber for each item
      # @return [Array<Exception>] what was raised
      def each(items, workers:, &) = @concurrency.each(items, workers, &)

      # Gives up after so many seconds.
      def time_out(seconds, &) = @concurrency.time_out(seconds, &)
    end

    # A contestant as the server whose application asks the database. See web/application.rb.
    class Served
      CONFIG = File.expand_path("web/config.ru", __dir__)

      # @return [HTTP::Contestant]
      attr_reader :server

      # @param key [String] the contestant's
      # @param server [HTTP::Contestant]
      # @param environment [Hash{String => String}] what configures the server
      def initialize(key, server, place, connections, environment)
        @key, @server, @place, @connections = key, server, place, connections
        @environment = @server.environment.merge(environment)
      end

      def command(...) = @server.command(...)

      def environment
        @environment.merge("BENCH_CONTESTANT" => @key, "BENCH_PLACE" => JSON.generate(@place),
                           "BENCH_CONNECTIONS" => @connections.to_s)
      end
    end

    # All of them, in the order of the columns.
    module Contestants
      module_function

      # @return [Array<Contestant>]
      def all
        peers = [
          ["blocking", "blocking pg", Concurrency::Blocking.new, Drivers::Pg.new],
          ["threads-ar", "threads, Active Record", Concurrency::Threads.new, Drivers::ActiveRecord.new],
          ["threads-sequel", "threads, Sequel", Concurrency::Threads.new, Drivers::Sequel.new],
          ["async-pg", "async, pg", Concurrency::Async.new, Drivers::AsyncPool.new],
          ["async-ar", "async, Active Record", Concurrency::Async.new, Drivers::ActiveRecord.new],
          ["blocking-mariadb", "blocking trilogy", Concurrency::Blocking.new, Drivers::Trilogy.new],
          ["threads-mysql2", "threads, mysql2", Concurrency::Threads.new, Drivers::Mysql2.new]
        ]
        (peers + heddle).map { |arguments| Contestant.new(*arguments) }
      end

      def heddle
        [Drivers::HeddlePg, Drivers::ActiveRecord, Drivers::Sequel, Drivers::HeddleTrilogy,
         Drivers::HeddleMysql2].map do |driver|
          name = driver.new.name
          ["heddle-#{name}", "Heddle, #{driver.new.label}", Concurrency::Heddle.new, driver.new]
        end
      end
      private_class_method :heddle
    end
  end
end
