# frozen_string_literal: true

module Heddle
  module Rails
    # name of the adapter => the query for the database server's maximum number of connections. SQLite has no server.
    QUESTIONS = { "postgresql" => "SHOW max_connections", "postgis" => "SHOW max_connections",
                  "trilogy" => "SELECT @@max_connections", "mysql2" => "SELECT @@max_connections" }.freeze
    private_constant :QUESTIONS

    # Compares the number of database connections that the application may open with the limit of the database server.
    #
    # @!attribute name [String, nil] the database's name; nil: there is only one database
    # @!attribute pool [Integer] maximum connections of a worker
    # @!attribute workers [Integer] number of workers
    # @!attribute reserves [Integer] number of reserve workers, which serve only while all others are blocked
    # @!attribute reloads [Boolean] whether a reload replaces the workers, so that old and new ones run for a while
    # @!attribute most [Integer, nil] maximum connections of the database server; nil: unknown
    # @!attribute max_total [Integer, nil] maximum connections of all workers together; nil: no such limit
    ConnectionBudget = Data.define(:name, :pool, :workers, :reserves, :reloads, :most, :max_total) do
      # Queries the databases, and makes their budgets. Outside of a loop, the queries block the thread.
      #
      # @param workers [Integer]
      # @param reserves [Integer]
      # @param reloads [Boolean]
      # @return [Array<ConnectionBudget>] one for each database with a server
      def self.all(workers, reserves = 0, reloads: false)
        return [] unless defined?(::ActiveRecord::Base)

        pools = ::ActiveRecord::Base.connection_handler.connection_pool_list(:writing)
        pools.filter_map do |pool|
          question = QUESTIONS[pool.db_config.adapter]
          next if question.nil? || pool.size.nil?

          new(name: (pool.db_config.name if pools.size > 1), pool: pool.size, workers:, reserves:,
              reloads:, most: ask(pool, question),
              max_total: (Databases::ActiveRecord::MaxTotal.total_of(pool.db_config) if Pool::Registry.sharing))
        end
      end

      def initialize(reserves: 0, reloads: false, max_total: nil, **rest) = super

      # @return [Integer] maximum number of connections that the workers may open
      def all = [pool * (workers + reserves), max_total].compact.min

      # @return [Integer] maximum number of connections that old and new workers together may open while a reload
      #   replaces the workers
      def peak = reloads ? [all * 2, max_total].compact.min : all

      # @return [Boolean] whether the application may open more than four fifths of the server's connections. The rest
      #   is for consoles, jobs, migrations, and the connections that the database server itself reserves
      def short? = !most.nil? && peak * 5 > most * 4

      # Logs the budget, as a warning if it is short.
      # @param log [#event]
      # @return [Object] what the log returns
      def report(log)
        processes = "workers #{workers}#{", reserves #{reserves}" if reserves.positive?}"
        limits = "pool #{pool}#{", max_total #{max_total}" if max_total}"
        budget = "#{"#{name}: " if name}#{limits}, #{processes} → at most #{all} connections" \
                 "#{", #{peak} during a reload" if reloads}"
        log.event(short? ? :database_connections_exceeded : :database_connections,
                  budget:, database: name, pool_size: pool, workers:, reserves:, limit: most)
      end

      # Ignores errors, because the application itself will report a server that it can't reach.
      def self.ask(pool, question)
        pool.with_connection { |connection| Integer(connection.select_value(question)) }
      rescue StandardError
        nil
      end
      private_class_method :ask
    end
  end
end
