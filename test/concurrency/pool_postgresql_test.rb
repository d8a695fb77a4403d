# frozen_string_literal: true

require_relative "support/loop_helpers"
require "support/private_postgresql"
require_relative "../support/fiber_of"

# A pool of connections to a real PostgreSQL, by the gem pg as it is.
class PoolPostgresqlTest < Minitest::Test
  include Heddle::LoopHelpers

  def setup
    need_program("postgres") unless PrivatePostgresql.programs
    skip "needs the gem pg: bin/setup" if Gem::Specification.find_all_by_name("pg").empty?
    require "pg"
    @server = PrivatePostgresql.shared
  end

  def connect = @server.connect

  def pool(**options)
    Heddle::Pool.new(check: ->(pg) { pg.exec("SELECT 1") }, **options) { connect }
  end

  def test_tasks_share_a_few_connections_and_none_mixes_rows_up
    in_loop do
      database = pool(max: 5)
      values = Heddle.map(1..300) do |number|
        database.with { |pg| pg.exec_params("SELECT $1::int * 2 AS double", [number]).getvalue(0, 0).to_i }
      end

      assert_equal((1..300).map { |number| number * 2 }, values)
      assert_operator database.size, :<=, 5
      database.close
    end
  end

  def test_queries_that_wait_wait_at_the_same_time
    in_loop do
      database = pool(max: 8)
      admin = connect
      admin.exec("SELECT pg_advisory_lock(1)")
      waiting = Array.new(8) { Heddle.async { database.with { |pg| pg.exec("SELECT pg_advisory_xact_lock(1)") } } }
      turns until admin.exec("SELECT count(*) FROM pg_locks WHERE NOT granted").getvalue(0, 0) == "8"
      admin.exec("SELECT pg_advisory_unlock(1)")
      waiting.each(&:wait)
      admin.close
      database.close
    end
  end

  def test_a_transaction_belongs_to_its_task
    in_loop do
      database = pool(max: 4)
      database.with { |pg| pg.exec("CREATE TABLE notes (number int)") }
      Heddle.map(1..20) do |number|
        database.with do |pg|
          pg.transaction do
            pg.exec_params("INSERT INTO notes VALUES ($1)", [number])
            raise ZeroDivisionError if number.odd?
          end
        end
      rescue ZeroDivisionError
        nil
      end
      kept = database.with { |pg| pg.exec("SELECT number FROM notes ORDER BY 1").column_values(0).map(&:to_i) }

      assert_equal (1..20).select(&:even?), kept
      database.close
    end
  end

  def test_connections_that_the_server_closed_are_replaced
    in_loop do
      database = pool(max: 2, check_after: 0)
      first = database.with(&:backend_pid)
      admin = connect
      admin.exec_params("SELECT pg_terminate_backend($1, 60000)", [first])
      admin.close

      refute_equal first, database.with { |pg| pg.exec("SELECT pg_backend_pid()").getvalue(0, 0).to_i }
      database.close
    end
  end

  def test_idle_connections_closed_by_the_server_are_not_acquired
    in_loop do
      database = Heddle::Pool.new(max: 3) { connect }
      all = Array.new(3) { database.acquire }
      all.each { |pg| database.release(pg) }
      admin = connect
      all.each { |pg| admin.exec_params("SELECT pg_terminate_backend($1, 60000)", [pg.backend_pid]) }
      admin.close

      assert_equal(%w[1 1 1], Array.new(3) { database.with { |pg| pg.exec("SELECT 1").getvalue(0, 0) } })
      assert_equal 3, database.statistics[:closed][:broken]
      database.close
    end
  end

  def test_where_the_server_refuses_more_the_tasks_share_what_there_is
    with_role(limit: 2) do |role|
      in_loop do
        database = Heddle::Pool.new(max: 5, retry_after: 60) { @server.connect(role) }
        # One after the other: the server counts connections that it is about to refuse.
        held = Array.new(2) { database.acquire }
        most = 0
        tasks = Array.new(20) do |number|
          Heddle.async do
            database.with do |pg|
              most = [most, database.busy].max
              pg.exec("SELECT #{number}, pg_sleep(0.001)").getvalue(0, 0).to_i
            end
          end
        end
        held.each { |pg| database.release(pg) }

        assert_equal [(0..19).to_a, 2], [tasks.map(&:value), most]
        database.close
      end
    end
  end

  def test_where_the_server_lets_the_user_in_no_more_the_tasks_share_what_there_is
    with_role(limit: -1) do |role, admin|
      in_loop do
        database = Heddle::Pool.new(max: 5, retry_after: 0) { @server.connect(role) }
        database.with do
          admin.exec("ALTER ROLE #{role} NOLOGIN")
          error = assert_raises(PG::ConnectionBad) { @server.connect(role) }
          assert_match(/not permitted to log in/, error.message)
        end
        served = Heddle.map(1..5) { |number| database.with { |pg| pg.exec("SELECT #{number}").getvalue(0, 0).to_i } }

        assert_equal [(1..5).to_a, 1], [served, database.size]
        admin.exec("ALTER ROLE #{role} LOGIN")
        both = Heddle::Barrier.new(2)
        Heddle.timeout(LIMIT) { Heddle.map(1..2) { database.with { both.wait } } }

        assert_equal 2, database.size
        database.close
      end
    end
  end

  def test_a_task_that_is_cancelled_in_a_query_leaves_nothing_behind
    in_loop do
      database = pool(max: 1)
      task = Heddle.async { database.with { |pg| pg.exec("SELECT pg_sleep(#{LIMIT})") } }
      turns until database.busy == 1
      took = seconds do
        task.cancel
        assert_equal "3", database.with { |pg| pg.exec("SELECT 3").getvalue(0, 0) }
      end

      assert_operator took, :<, LIMIT / 2.0, "nobody waits for the query's end"
      assert_equal [1, 0], [database.size, database.busy]
      database.close
    end
  end

  def test_a_fiber_that_is_killed_in_a_query_leaves_no_query_behind
    in_loop do
      database = pool(max: 1)
      admin = connect
      victim = Heddle.async { database.with { |pg| pg.exec("SELECT pg_sleep(#{LIMIT}) AS killed") } }
      turns until sleeping(admin) == 1
      backend = admin.exec("SELECT pid FROM pg_stat_activity WHERE query LIKE '% AS killed'").getvalue(0, 0)
      took = seconds do
        fiber_of(victim).kill
        assert_equal backend, database.with { |pg| pg.exec("SELECT pg_backend_pid()").getvalue(0, 0) }
      end

      assert_operator took, :<, LIMIT / 2.0, "nobody waits for the query's end"
      assert_equal [0, 1, 0], [sleeping(admin), database.size, database.busy]
      [database, admin].each(&:close)
    end
  end

  private

  # Seconds of a query that is not to be awaited.
  LIMIT = 60
  private_constant :LIMIT

  def sleeping(admin)
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep% AS killed'"
    admin.exec(running).getvalue(0, 0).to_i
  end

  # @param limit [Integer] of its connections; -1: none
  # @yield [role, admin] a user that is no superuser, and the connection that made it
  def with_role(limit:)
    admin = connect
    admin.exec("CREATE ROLE guest LOGIN CONNECTION LIMIT #{limit}")
    yield "guest", admin
  ensure
    admin&.exec("DROP ROLE IF EXISTS guest")
    admin&.close
  end
end
