# frozen_string_literal: true

require "test_helper"
require "heddle"
require_relative "../support/fiber_of"

# What Heddle adds to Sequel's pools, with a mock database.
class SequelPoolTest < Minitest::Test
  def setup
    skip "needs the gem sequel: bin/setup" if Gem::Specification.find_all_by_name("sequel").empty?
    require "sequel"
    require "heddle/databases/sequel"
    Sequel.extension(:fiber_concurrency)
    @database = Sequel.mock(max_connections: 1, pool_timeout: 5, pool_class: :timed_queue)
    Heddle::Databases::Sequel.prepare_pool(@database.pool)
  end

  # The one that is interrupted discards the connection, and there is no other.
  def test_a_task_that_waits_gets_a_connection_when_another_is_interrupted_at_its_check_out
    questions = 0
    interrupt_second { (questions += 1) != 2 || raise(IndexError) }
  end

  def test_a_task_that_waits_gets_a_connection_when_another_is_interrupted_while_it_connects
    questions = made = 0 # a connection was made at first, to try it
    @database.pool.define_singleton_method(:make_new) do |server|
      (made += 1) == 1 ? raise(IndexError) : super(server)
    end
    interrupt_second { (questions += 1) != 2 }
  end

  KINDS = { "timed_queue" => {}, "threaded" => {}, "sharded_timed_queue" => { servers: { other: {} } },
            "sharded_threaded" => { servers: { other: {} } } }.freeze

  KINDS.each do |kind, options|
    define_method("test_a_task_of_a_#{kind}_pool_that_can_never_have_a_connection_gets_an_error_with_both_places") do
      database = frozen(2, pool_class: kind.to_sym, **options)
      first = __LINE__ + 2
      error = Heddle.run do
        outcome { database.synchronize { inside { database.synchronize { inside { ask(database) } } } } }
      end

      assert_kind_of Sequel::PoolTimeout, error
      assert_kind_of Heddle::Error, error
      assert_match(/all 2 connections .+ was checked out at #{__FILE__}:#{first}, .+ waits at #{__FILE__}:\d+\./,
                   error.message)
      assert_equal 2, database.pool.size
    end

    define_method("test_a_waiting_task_of_a_#{kind}_pool_gets_a_connection_when_the_one_before_it_is_killed") do
      database = frozen(1, pool_class: kind.to_sym, **options)
      Heddle.run do
        gate = Queue.new
        killed = nil
        Heddle.async { database.synchronize { gate.pop } && fiber_of(killed).kill }
        killed = Heddle.async { ask(database) }
        waiting = Heddle.async { ask(database) }
        sleep 0 until [killed, waiting].all? { |task| queued?(task) }
        gate << :done

        assert_equal(:served, Heddle.timeout(60) { waiting.value })
      end
    end
  end

  def test_a_thread_without_a_loop_gets_another_connection_in_place_of_one_that_is_settled
    fit = [false, true]
    Heddle::Databases::Sequel.stub(:fit?, ->(_connection) { fit.shift }) do
      Heddle::Databases::Sequel.stub(:settling?, true) { assert_equal :served, ask(@database) }
    end
    assert_equal 1, @database.pool.size
  end

  KINDS.each do |kind, options|
    define_method("test_status_and_metrics_show_a_#{kind}_pool_with_the_tasks_that_wait") do
      database = frozen(1, pool_class: kind.to_sym, name: "shop of #{kind}", **options)
      Heddle.run do
        database.synchronize do
          task = Heddle.async { ask(database) }
          sleep 0 until queued?(task)

          assert_equal [1, 1, 1, 0, 1], row(kind).values_at(:limit, :size, :busy, :idle, :waiting)
        end
      end

      assert_equal [1, 1, 0, 1, 0], row(kind).values_at(:limit, :size, :busy, :idle, :waiting)
    end

    define_method("test_a_waiting_task_of_a_#{kind}_pool_gets_a_connection_when_another_is_killed_while_it_connects") do
      gate = Queue.new
      slow = connecting = false
      database = frozen(1, pool_class: kind.to_sym, **options,
                           after_connect: ->(_connection) { slow && (connecting = true) && gate.pop })
      database.disconnect
      slow = true
      Heddle.run do
        killed = Heddle.async { ask(database) }
        waiting = Heddle.async { ask(database) }
        sleep 0 until connecting && queued?(waiting)
        fiber_of(killed).kill
        gate.close

        assert_equal(:served, Heddle.timeout(60) { waiting.value })
        assert_equal 1, database.pool.size
      end
    end
  end

  # Code that is loaded for it can wait.
  def test_a_task_that_is_interrupted_while_its_check_out_is_noted_keeps_no_connection
    database = frozen(1)
    Heddle.run do
      Heddle::Databases::Sequel::Checkouts.stub(:new, ->(_pool) { raise IndexError }) do
        assert_raises(IndexError) { ask(database) }
      end

      assert_empty database.pool.instance_variable_get(:@allocated)
      assert_equal :served, ask(database)
    end
  end

  # Its fiber would keep it, even when it is closed.
  KINDS.each do |kind, options|
    define_method("test_connection_of_a_#{kind}_pool_comes_back_when_its_task_is_cancelled_at_the_mutex") do
      database = frozen(1, pool_class: kind.to_sym, **options)
      Heddle.run do
        released = false
        task = Heddle.async do
          database.synchronize do
            hold_mutex(database.pool) { released }
            Heddle.async { task.cancel }
            released = true
          end
        end
        task.wait

        assert_empty database.pool.instance_variable_get(:@allocated).values.grep_v({})
        assert_equal :served, ask(database)
      end
    end
  end

  # The other fiber waits for the bytes that the question would read.
  def test_a_connection_is_asked_whether_it_is_alive_when_the_fiber_that_settles_it_has_ended
    skip "needs the gem pg: bin/setup" if Gem::Specification.find_all_by_name("pg").empty?
    require "pg"
    asked = false
    connection = Class.new(PG::Connection) do
      define_method(:consume_input) { asked = true }
      define_method(:finished?) { false }
      define_method(:pipeline_status) { PG::PQ_PIPELINE_OFF }
      define_method(:transaction_status) { PG::PQTRANS_IDLE }
    end.allocate
    Heddle::Databases::Postgresql::SETTLEMENTS[connection] = settlement = Queue.new
    Heddle.run do
      waiting = Heddle.async { Heddle::Databases::Sequel.fit?(connection) }
      sleep 0 until asked || settlement.num_waiting == 1

      refute asked
      settlement.close

      assert waiting.value
      assert asked
    end
  end

  def test_a_task_that_is_waited_for_only_later_gets_the_error_then
    database = frozen(1)
    Heddle.run do
      Heddle.supervise(on_failure: ->(*) {}) do
        database.synchronize do
          child = Heddle.async { ask(database) }
          sleep 0 until database.pool.num_waiting == 1
          assert_kind_of(Sequel::PoolTimeout, assert_raises(Heddle::Error) { child.value })
        end
      end
      assert_equal :served, ask(database)
    end
  end

  def test_a_task_is_served_by_what_a_stranger_gives_back
    database = frozen(2)
    Heddle.run do
      gate = Heddle::Promise.new
      Heddle.async { database.synchronize { gate.wait } }
      Heddle.async { (sleep 0 until database.pool.num_waiting == 1) || gate.resolve }
      _, err = capture_io { assert_equal(:served, database.synchronize { inside { ask(database) } }) }

      assert_match(/a task waits for a connection at .+sequel_pool_test.rb:\d+.+ waits for it, already holds one,/, err)
    end
  end

  KINDS.each do |kind, options|
    define_method("test_in_development_a_warning_says_that_a_task_of_a_#{kind}_pool_is_beside_the_transaction") do
      Heddle::Databases::Checkouts.remove_instance_variable(:@warned_of_transaction) if warned?
      database = frozen(3, pool_class: kind.to_sym, **options)
      database.synchronize { Heddle.run { database.synchronize { inside { ask(database) } } } }

      refute_predicate self, :warned?, "no task around is in a transaction"
      line = __LINE__ + 2
      _, err = capture_io do
        Heddle.run { database.transaction { inside { inside { database.synchronize { :served } } } } }
      end

      assert_match(/a task uses a database connection of its own at #{__FILE__}:#{line}, while its parent/, err)
    end
  end

  private

  def warned? = Heddle::Databases::Checkouts.instance_variable_defined?(:@warned_of_transaction)

  # Applications freeze their databases, before Heddle prepares them.
  def frozen(connections, **)
    Heddle::Databases.install
    Sequel.mock(max_connections: connections, pool_timeout: 60, **).freeze
  end

  def row(kind) = Heddle::Databases::Pools.all.find { |pool| pool[:pool].start_with?("shop of #{kind}") }

  # Until this thread waits, after the block has said so.
  def hold_mutex(pool)
    waiting = Thread.current
    locked = Queue.new
    Thread.new do
      pool.__send__(:sync) { locked.push(true) && (Thread.pass until yield && waiting.status == "sleep") }
    end
    locked.pop
  end

  # Not every pool counts those who wait.
  def queued?(task) = fiber_of(task).backtrace.any? { |line| line.include?("heddle_wait") }

  def ask(database) = database.synchronize { :served }

  def inside(&) = Heddle.scope { |scope| scope.async(&).value }

  def outcome
    yield
  rescue StandardError => e
    e
  end

  # Three tasks, one after the other; the second one is interrupted.
  # @yield whether the connection is fit
  def interrupt_second(&fit)
    Heddle::Databases::Sequel.stub(:fit?, ->(_connection) { fit.call }) do
      Heddle.run do
        holder = Queue.new
        Heddle.async { @database.synchronize { holder.pop } }
        Heddle.async { assert_raises(IndexError) { @database.synchronize { flunk } } }
        waiting = Heddle.async { @database.synchronize { :served } }
        sleep 0 until @database.pool.num_waiting == 2
        holder << :done

        assert_equal :served, waiting.value
      end
    end
  end
end
