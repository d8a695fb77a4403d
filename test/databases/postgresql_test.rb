# frozen_string_literal: true

require "test_helper"
require "heddle"
require "minitest/mock"

# How an abandoned query of a connection of the gem pg is given to another fiber, with a stub of a connection.
class PostgresqlTest < Minitest::Test
  # A query is under way, and the server does not confirm its cancel before {#confirm}.
  class Connection
    def initialize = @confirmed = Queue.new

    def finished? = @finished || false

    def close = @finished = true

    def transaction_status
      raise PG::ConnectionBad, "connection is closed" if finished?

      @confirmed.closed? ? PG::PQTRANS_IDLE : PG::PQTRANS_ACTIVE
    end

    def status = PG::CONNECTION_OK

    def cancel = nil

    def discard_results = @confirmed.pop

    def async_exec(_sql) = nil

    def confirm = @confirmed.close
  end

  def setup
    skip "needs the gem pg: bin/setup" if Gem::Specification.find_all_by_name("pg").empty?
    require "pg"
  end

  def test_other_fibers_wait_until_an_abandoned_connection_is_settled
    Heddle.run do
      connection = Connection.new
      driver.abandon(connection)
      waiting = Heddle.async { driver.settle(connection) }

      assert driver.settling?(connection)
      connection.confirm

      assert waiting.value
      refute driver.settling?(connection)
    end
  end

  # At the limit of fibers. What Ruby says then is raised by its scheduler's hook.
  def test_a_connection_for_which_no_fiber_can_be_started_is_closed_at_once
    Heddle.run do
      connection = Connection.new
      Fiber.stub(:schedule, -> { raise FiberError, "can't alloc machine stack to fiber" }) do
        assert_raises(FiberError) { driver.abandon(connection) }
      end

      assert_predicate connection, :finished?
      refute driver.settling?(connection)
      refute driver.settle(connection)
    end
  end

  def test_a_closed_connection_is_not_given_to_another_fiber
    Heddle.run do
      connection = Connection.new
      connection.close
      Fiber.stub(:schedule, -> { flunk "nothing is left to settle" }) { driver.abandon(connection) }
      refute driver.settling?(connection)
    end
  end

  private

  def driver = Heddle::Databases::Postgresql
end
