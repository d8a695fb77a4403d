# frozen_string_literal: true

$LOAD_PATH.unshift(File.join(Bench::ROOT, "test"))
require "support/private_mariadb"
require "support/private_postgresql"
require_relative "queries"

module Bench
  module Databases
    # A private PostgreSQL or MariaDB for one row, with the tables that the queries read.
    module Servers
      ITEMS = 1_000
      # Rows of the first try at a table that takes {LONG} to scan.
      FIRST = 50_000
      LONG = 0.05 # seconds
      TRIES = 5
      LARGEST = 20_000_000
      SETTINGS = { "max_connections" => 200, "max_parallel_workers_per_gather" => 0, "shared_buffers" => "512MB",
                   "autovacuum" => "off" }.freeze
      private_constant :FIRST, :LONG, :TRIES, :LARGEST, :SETTINGS

      class << self
        # @param database [Symbol] :postgresql or :mariadb
        # @param settings [Hash{String => Object}] of PostgreSQL's configuration
        # @param width [Integer] bytes of a row of the scanned table at least
        # @yieldparam place [Hash] where it is: :folder and :user, or :socket
        # @yieldparam server [PrivateServer]
        # @raise [Child::Failed] where it is not installed
        def during(database, settings = {}, width: 0)
          server, place, query = send(database, settings)
          fill(database, width, &query)
          yield place, server
        ensure
          query&.call(nil)
          server&.stop
        end

        private

        def postgresql(settings)
          raise Child::Failed, "needs PostgreSQL (Debian package postgresql)" unless PrivatePostgresql.programs

          require "pg"
          server = PrivatePostgresql.new(SETTINGS.merge(settings))
          connection = server.connect
          [server, { folder: server.folder, user: PrivatePostgresql::USER },
           ->(sql) { sql ? connection.exec(sql).values.dig(0, 0) : connection.close }]
        end

        def mariadb(_settings)
          raise Child::Failed, "needs MariaDB (Debian package mariadb-server-core)" unless PrivateMariadb.program

          require "trilogy"
          server = PrivateMariadb.new
          connection = Trilogy.new(socket: server.socket)
          connection.query("CREATE DATABASE #{Queries::DATABASE}")
          connection.query("USE #{Queries::DATABASE}")
          connection.query("SELECT GET_LOCK('#{Queries::HELD}', 0)")
          [server, { socket: server.socket },
           ->(sql) { sql ? connection.query(sql).rows.dig(0, 0) : connection.close }]
        end

        def fill(database, width, &query)
          query.call("CREATE TABLE items (id int PRIMARY KEY, text varchar(40) NOT NULL)")
          query.call("INSERT INTO items SELECT n, concat('item ', n) FROM #{numbers(database, 1, ITEMS)}")
          query.call("CREATE TABLE #{Queries::SCANNED} (id int, text varchar(#{[width, 40].max}) NOT NULL)")
          scan(database, 1, FIRST, width, &query)
          needed = (FIRST * LONG / seconds(&query)).round
          raise Child::Failed, "a scan of 50 ms needs more than #{LARGEST} rows" if needed > LARGEST

          scan(database, FIRST + 1, needed, width, &query) if needed > FIRST
          shorten(database, needed, &query) if needed < FIRST
        end

        def scan(database, from, to, width)
          text = "concat('text ', n)"
          text = "rpad(#{text}, #{width}, '-')" if width.positive?
          yield "INSERT INTO #{Queries::SCANNED} SELECT n, #{text} FROM #{numbers(database, from, to)}"
          yield tidy(database)
        end

        def shorten(database, rows)
          yield "DELETE FROM #{Queries::SCANNED} WHERE id > #{rows}"
          yield tidy(database)
        end

        def tidy(database)
          "#{database == :postgresql ? "VACUUM (ANALYZE)" : "ANALYZE TABLE"} #{Queries::SCANNED}"
        end

        def numbers(database, from, to)
          return "generate_series(#{from}, #{to}) AS numbers(n)" if database == :postgresql

          "(SELECT seq AS n FROM seq_#{from}_to_#{to}) AS numbers"
        end

        # The shortest of some: others' work only adds to it.
        def seconds
          Array.new(TRIES) do
            began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
            yield Queries::LONG
            Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
          end.min
        end
      end
    end
  end
end
