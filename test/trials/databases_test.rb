# frozen_string_literal: true

require_relative "support/trial"
require "support/private_mariadb"
require "support/private_postgresql"

# Drivers of databases as they are, with every protection on: queries of one loop wait at the same time, which a lock
# that they wait for shows without a clock.
class TrialDatabasesTest < Minitest::Test
  include Trial

  QUERIES = 50

  # The driver, and how a program connects and asks with it; each query is a method of the connection.
  MYSQL2 = <<~RUBY
    require "mysql2"
    connect = -> { Mysql2::Client.new(socket: ARGV[0], username: "root") }
    ask = ->(connection, sql) { connection.query(sql, as: :array).first.first }
  RUBY
  TRILOGY = <<~RUBY
    require "trilogy"
    connect = -> { Trilogy.new(socket: ARGV[0], username: "root") }
    ask = ->(connection, sql) { connection.query(sql).first.first }
  RUBY

  # Fifty connections ask for a lock that the first one has and lets go of when all of them wait; then each passes it
  # on. In a loop that one query blocks nobody would ever let go.
  ADVISORY = <<~RUBY
    first = connect.call
    ask.call(first, "SELECT GET_LOCK('heddle', 0)") == 1 or abort "the lock is taken"
    others = Heddle.map(1..%<queries>d) { connect.call }
    waiting = others.map do |connection|
      Heddle.async do
        got = ask.call(connection, "SELECT GET_LOCK('heddle', 60)")
        ask.call(connection, "SELECT RELEASE_LOCK('heddle')")
        connection.close
        got
      end
    end
    count = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK%%'"
    sleep 0.001 until ask.call(first, count) == %<queries>d
    ask.call(first, "SELECT RELEASE_LOCK('heddle')")
    p waiting.map(&:value).tally
  RUBY

  # What a query gives and what it raises comes to its own fiber, while others' results are read.
  MIXED = <<~RUBY
    results = Heddle.map(1..40, limit: 8) do |number|
      connection = connect.call
      sql = number.even? ? "SELECT \#{number}, REPEAT('x', 200000), SLEEP(0.001)" : "SELECT nothing FROM nowhere_\#{number}"
      value = begin
        ask.call(connection, sql)
      rescue StandardError => e
        e.message[/nowhere_\\d+|No database/i]
      end
      connection.close
      value
    end
    wrong = results.each_with_index.reject { |value, i| (i + 1).even? ? value == i + 1 : value.is_a?(String) }
    p results.size, wrong
  RUBY

  %w[mysql2 trilogy].each do |driver|
    define_method("test_queries_by_#{driver}_wait_at_the_same_time") do
      assert_equal "{1=>#{QUERIES}}\n", query(driver, format(ADVISORY, queries: QUERIES)).delete(" ")
    end

    define_method("test_results_and_errors_of_#{driver}_come_to_their_own_fiber") do
      assert_equal "40\n[]\n", query(driver, MIXED)
    end
  end

  # exec waits by the scheduler, sync_exec holds Ruby's lock in libpq's poll.
  %w[exec sync_exec].each do |method|
    define_method("test_queries_by_pg_#{method}_wait_at_the_same_time") do
      need_program("postgres") unless PrivatePostgresql.programs
      need_gem "pg"
      require "pg"
      program = <<~RUBY
        require "pg"
        connect = -> { PG.connect(ARGV[0]) }
        Heddle.run do
          first = connect.call
          first.exec("SELECT pg_advisory_lock(1)")
          others = Heddle.map(1..#{QUERIES}) { connect.call }
          waiting = others.map do |connection|
            Heddle.async { connection.#{method}("SELECT pg_advisory_lock_shared(1), 1").getvalue(0, 1) }
          end
          count = "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
          sleep 0.001 until first.exec(count).getvalue(0, 0) == "#{QUERIES}"
          first.exec("SELECT pg_advisory_unlock(1)")
          p waiting.map(&:value).tally
        end
      RUBY

      assert_equal "{\"1\"=>#{QUERIES}}\n", protected_program(program, PrivatePostgresql.shared.url).delete(" ")
    end
  end

  private

  def query(driver, program)
    skip "needs the program mariadbd (Debian package mariadb-server-core): bin/setup --system" unless
      PrivateMariadb.program
    need_gem driver
    head = driver == "mysql2" ? MYSQL2 : TRILOGY
    body = "#{head}Heddle.run do\n#{program}\nend\n"
    protected_program(body, PrivateMariadb.shared.socket)
  end
end
