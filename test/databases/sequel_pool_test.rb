# frozen_string_literal: true

require "test_helper"
require "heddle"

# What Heddle adds to Sequel's pools, with a database that only pretends.
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

  private

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
