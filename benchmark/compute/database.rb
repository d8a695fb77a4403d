# frozen_string_literal: true

require "sqlite3"

module Bench
  module Compute
    # A table in memory, with a connection for each thread and fiber that reads it, as a pool would lend it.
    class Database
      ROWS = 5_000
      COLUMNS = Application::COLUMNS

      def initialize
        @path = "file:compute?mode=memory&cache=shared"
        @idle = Thread::Queue.new
        connection = open
        connection.execute("create table notes (#{COLUMNS.join(", ")})")
        insert(connection)
        @idle << connection
      end

      # @return [Array<Hash>] so many records, by name of the column
      def query(number, count)
        connection = @idle.empty? ? open : @idle.pop
        connection.execute("select * from notes where id >= ? limit ?", [number * count % (ROWS - count), count])
      ensure
        @idle << connection if connection
      end

      private

      def open = SQLite3::Database.new(@path, uri: true).tap { |connection| connection.results_as_hash = true }

      def insert(connection)
        connection.transaction do
          ROWS.times do |index|
            values = COLUMNS.map { |name| name == "id" ? index : "#{name} <#{index}> of all & others" }
            connection.execute("insert into notes values (#{(["?"] * values.size).join(", ")})", values)
          end
        end
      end
    end
  end
end
