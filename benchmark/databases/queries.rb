# frozen_string_literal: true

module Bench
  module Databases
    # The queries, the same for all contestants, drivers and databases.
    module Queries
      DATABASE = "bench"
      # The table of {LONG}.
      SCANNED = "scanned"
      # The database computes for some 50 ms: {Servers} makes the table as large as that takes.
      LONG = "SELECT count(*) FROM #{SCANNED} WHERE text LIKE '%none%'".freeze
      # Its result.
      NONE = 0
      # A lock of MariaDB that is never free.
      HELD = "held"

      module_function

      # @return [String] by the primary key; its result is the id
      def short(id) = "SELECT id FROM items WHERE id = #{id}"

      # A query that waits until it is killed, or for so many seconds. MariaDB's SLEEP has one lock for all sleepers, so
      # that a KILL of one of several may take half a second: there it waits for a lock that {Servers} holds.
      #
      # @return [String]
      def stuck(seconds, database)
        database == :mariadb ? "SELECT GET_LOCK('#{HELD}', #{seconds})" : sleep(seconds, database)
      end

      # @return [String] the database waits for so many seconds and answers
      def sleep(seconds, database)
        database == :mariadb ? "SELECT SLEEP(#{seconds})" : "SELECT 1 FROM pg_sleep(#{seconds})"
      end

      # @return [String] how many of the queries that {stuck} made the database runs
      def count_stuck(seconds, database)
        text = "LIKE '%#{stuck(seconds, database).tr("'", "_")}%'"
        if database == :mariadb
          return "SELECT count(*) FROM information_schema.PROCESSLIST WHERE INFO #{text} AND ID <> CONNECTION_ID()"
        end

        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query #{text} AND pid <> pg_backend_pid()"
      end

      # @return [String] how many connections the database has, with that of {Servers}
      def count_connections(database)
        return "SELECT count(*) FROM information_schema.PROCESSLIST WHERE USER <> 'system user'" if database == :mariadb

        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
      end

      # @return [Integer] the result of {sleep}
      def slept(database) = database == :mariadb ? 0 : 1
    end
  end
end
