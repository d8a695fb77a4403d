# frozen_string_literal: true

module Heddle
  module Rails
    # By the adapter's name: the query for the maximum number of a database's connections. SQLite has no server.
    QUESTIONS = { "postgresql" => "SHOW max_connections", "postgis" => "SHOW max_connections",
                  "trilogy" => "SELECT @@max_connections", "mysql2" => "SELECT @@max_connections" }.freeze
    private_constant :QUESTIONS

    # Compares the number of database connections that the application may open with the limit of the database server.
    #
    # @!attribute name [String, nil] of the database; nil: there is only one
    # @!attribute pool [Integer] connections a worker
    # @!attribute workers [Integer]
    # @!attribute reserves [Integer] reserve workers
    # @!attribute reloads [Boolean] whether a reload replaces the workers, so that old and new ones run for a while
    # @!attribute most [Integer, nil] connections of the database server; nil: not known
    # @!attribute max_total [Integer, nil] connections of all workers; nil: only each worker has a limit
    ConnectionBudget = Data.define(:name, :pool, :workers, :reserves, :reloads, :most, :max_total) do
      # Asks the databases. Outside of a loop this blocks the thread.
      #
      # @param workers [Integer]
      # @param reserves [Integer]
      # @param reloads [Boolean]
      # @return [Array<ConnectionBudget>] one for each database server that counts connections
      def self.all(workers, reserves = 0, reloads: false)
        return [] unless defined?(::ActiveRecord::Base)

        pools = ::ActiveRecord::Base.connection_handler.connection_pool_list(:writing)
        pools.filter_map do |pool|
          question = QUESTIONS[pool.db_config.adapter]
          next if question.nil? || pool.size.nil?

          new(name: (pool.db_config.name if pools.size > 1), pool: pool.size, workers:, reserves:,
              reloads:, most: ask(pool, question),
              max_total: (Databases::ActiveRecord::Limit.total_of(pool.db_config) if Pool::Registry.sharing))
        end
      end

      def initialize(reserves: 0, reloads: false, max_total: nil, **rest) = super

      # @return [Integer] how many connections the workers may open
      def all = [pool * (workers + reserves), max_total].compact.min

      # @return [Integer] how many connections the workers may open while a reload replaces them, which is the maximum
      def peak = reloads ? [all * 2, max_total].compact.min : all

      # @return [Boolean] whether the application may need more than four fifths of the server's connections: consoles,
      #   jobs and migrations need some, and the server keeps a few for itself
      def short? = !most.nil? && peak * 5 > most * 4

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

      # Ignores errors: the application itself will report a server that can't be reached.
      def self.ask(pool, question)
        pool.with_connection { |connection| Integer(connection.select_value(question)) }
      rescue StandardError
        nil
      end
      private_class_method :ask
    end
  end
end
