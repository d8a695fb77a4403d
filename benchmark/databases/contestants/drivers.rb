# frozen_string_literal: true

module Bench
  module Databases
    # Drivers, and the pools in front of them.
    module Drivers
      # Seconds that a query waits for a connection: longer than any row lasts.
      PATIENCE = 120
      # The same within a server: what applications have that say nothing.
      SERVED_PATIENCE = 5

      # What all of them have.
      class Driver
        def database = :postgresql

        def finds_limit? = false

        # @param place [Hash] where the database is, as {Servers} says it
        # @param connections [Integer, :auto]
        # @param patience [Numeric] seconds that a query waits for a connection, where there is a pool
        def open(_place, _connections, _patience) = raise(NotImplementedError)
      end

      # pg, one connection.
      class Pg < Driver
        def prepare(**) = require("pg")

        def version = "pg #{PG::VERSION}"

        def open(place, _connections, _patience) = @connection = connect(place)

        def query(sql) = @connection.exec(sql).getvalue(0, 0)

        private

        def connect(place) = PG.connect(host: place[:folder], dbname: "postgres", user: place[:user])
      end

      # pg in a pool of Heddle's.
      class HeddlePg < Pg
        def name = "pg"

        def label = "pg"

        def finds_limit? = true

        def open(place, connections, patience)
          @pool = ::Heddle::Pool.new(max: connections, timeout: patience, check: CHECK) { connect(place) }
        end

        CHECK = ->(connection) { connection.status == PG::CONNECTION_OK && !connection.finished? }
        private_constant :CHECK

        def query(sql) = @pool.with { |connection| connection.exec(sql).getvalue(0, 0) }
      end

      # pg in a pool of the gem async-pool.
      class AsyncPool < Pg
        # What the pool wants of a resource.
        Resource = Struct.new(:connection) do
          attr_accessor :failed

          def concurrency = 1

          def count = 0

          def viable? = !failed

          def reusable? = !failed

          def close = connection.close
        end
        private_constant :Resource

        def prepare(**)
          super
          require "async/pool"
          require "async/pool/controller"
        end

        def version = "#{super}, async-pool #{Async::Pool::VERSION}"

        def open(place, connections, _patience)
          @pool = Async::Pool::Controller.wrap(limit: connections) { Resource.new(connect(place)) }
        end

        def query(sql)
          @pool.acquire do |resource|
            resource.connection.exec(sql).getvalue(0, 0)
          rescue PG::Error
            resource.failed = true
            raise
          end
        end
      end

      # Active Record over pg.
      class ActiveRecord < Driver
        def name = "ar"

        def label = "Active Record"

        def prepare(fibers:)
          require "active_record"
          ActiveSupport::IsolatedExecutionState.isolation_level = :fiber if fibers
        end

        def version = "Active Record #{::ActiveRecord::VERSION::STRING}"

        def open(place, connections, patience)
          ::ActiveRecord::Base.establish_connection(
            adapter: "postgresql", host: place[:folder], database: "postgres", username: place[:user],
            pool: connections, checkout_timeout: patience
          )
        end

        def query(sql) = ::ActiveRecord::Base.with_connection { |connection| connection.select_value(sql) }
      end

      # Sequel over pg.
      class Sequel < Driver
        def name = "sequel"

        def label = "Sequel"

        def prepare(fibers:)
          require "sequel"
          ::Sequel.extension(:fiber_concurrency) if fibers
        end

        def version = "Sequel #{::Sequel::VERSION}"

        def open(place, connections, patience)
          @database = ::Sequel.connect(adapter: "postgres", host: place[:folder], database: "postgres",
                                       user: place[:user], max_connections: connections,
                                       pool_timeout: patience)
        end

        def query(sql) = @database.fetch(sql).single_value!
      end

      # trilogy, one connection.
      class Trilogy < Driver
        def database = :mariadb

        def prepare(**) = require("trilogy")

        def version = "trilogy #{::Trilogy::VERSION}"

        def open(place, _connections, _patience) = @connection = connect(place)

        def query(sql) = @connection.query(sql).rows.dig(0, 0)

        private

        def connect(place) = ::Trilogy.new(socket: place[:socket], database: Queries::DATABASE)
      end

      # trilogy in a pool of Heddle's.
      class HeddleTrilogy < Trilogy
        def name = "trilogy"

        def label = "trilogy"

        def open(place, connections, patience)
          @pool = ::Heddle::Pool.new(max: connections, timeout: patience) { connect(place) }
        end

        def query(sql) = @pool.with { |connection| connection.query(sql).rows.dig(0, 0) }
      end

      # mysql2, a connection for each thread.
      class Mysql2 < Driver
        def database = :mariadb

        def prepare(**) = require("mysql2")

        def version = "mysql2 #{::Mysql2::VERSION}"

        def open(place, _connections, _patience) = @place = place

        def query(sql)
          connection = Thread.current.thread_variable_get(:connection)
          Thread.current.thread_variable_set(:connection, connection = connect(@place)) unless connection
          connection.query(sql, as: :array).first.first
        end

        private

        def connect(place)
          ::Mysql2::Client.new(socket: place[:socket], database: Queries::DATABASE, username: "root")
        end
      end

      # mysql2 in a pool of Heddle's.
      class HeddleMysql2 < Mysql2
        def name = "mysql2"

        def label = "mysql2"

        def open(place, connections, patience)
          @pool = ::Heddle::Pool.new(max: connections, timeout: patience) { connect(place) }
        end

        def query(sql) = @pool.with { |connection| connection.query(sql, as: :array).first.first }
      end
    end
  end
end
