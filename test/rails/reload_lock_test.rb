# frozen_string_literal: true

# test: each version

require "test_helper"
require "heddle"
require "timeout"

# The lock that keeps code from being reloaded while requests run, whose owners are fibers.
class RailsReloadLockTest < Minitest::Test
  def setup
    skip "needs the gems of examples/rails: bin/setup" if Gem::Specification.find_all_by_name("activesupport").empty?
    require "active_support"
    require "active_support/isolated_execution_state"
    @level = ActiveSupport::IsolatedExecutionState.isolation_level
    ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
    @lock = Heddle::Rails::ReloadLock.new
    @events = []
  end

  def teardown
    ActiveSupport::IsolatedExecutionState.isolation_level = @level if @level
  end

  def in_loop(&)
    Timeout.timeout(30) { Heddle.run(&) }
  end

  def turns(count = 20) = count.times { sleep 0 }

  def test_a_reload_waits_for_the_other_fibers_of_its_thread
    in_loop do
      running = Heddle::Promise.new
      Heddle.async { @lock.sharing { running.value && @events << :done } }
      Heddle.async { @lock.exclusive { @events << :reloaded } }
      turns

      assert_empty @events
      running.resolve(true)
    end

    assert_equal %i[done reloaded], @events
  end

  def test_a_fiber_with_a_share_reloads_without_waiting_for_itself
    in_loop { @lock.sharing { @lock.exclusive { @lock.exclusive { @events << :reloaded } } } }

    assert_equal %i[reloaded], @events
  end

  def test_fifty_requests_that_all_find_out_that_they_have_to_reload_do_so_one_by_one
    alone = 0
    in_loop do
      50.times do |number|
        Heddle.async do
          @lock.sharing do
            sleep 0
            @lock.exclusive do
              alone += 1
              turns(2)
              @events << alone
              alone -= 1
            end
            @events << number
            sleep 0.001
          end
        end
      end
    end

    assert_equal [1] * 50, @events.first(50), "all reload before the first one goes on"
    assert_equal (0...50).to_a, @events.last(50).sort
  end

  def test_a_thread_gets_its_share_while_a_reload_waits
    in_loop do
      Heddle.async do
        @lock.sharing do
          turns
          Thread.new { @lock.sharing { @events << :live } }.join
        end
      end
      Heddle.async { @lock.exclusive { @events << :reloaded } }
    end

    assert_equal %i[live reloaded], @events
  end

  def test_no_other_fiber_runs_during_a_reload
    in_loop do
      Heddle.async do
        @lock.exclusive do
          turns
          @events << :reloaded
        end
      end
      Heddle.async { @lock.sharing { @events << :ran } }
    end

    assert_equal %i[reloaded ran], @events
  end

  def test_a_waiter_that_is_cancelled_leaves_the_lock_usable
    in_loop do
      running = Heddle::Promise.new
      Heddle.async { @lock.sharing { running.value } }
      waiting = Heddle.async { @lock.sharing { @lock.exclusive { @events << :never } } }
      turns
      waiting.cancel
      turns
      running.resolve(true)
      turns
      @lock.exclusive { @events << :reloaded }
    end

    assert_equal %i[reloaded], @events
  end

  def test_without_waiting_it_says_that_it_can_not
    in_loop do
      running = Heddle::Promise.new
      Heddle.async { @lock.sharing { running.value } }
      turns

      refute @lock.start_exclusive(no_wait: true)
      running.resolve(true)
    end

    assert @lock.start_exclusive(no_wait: true)
  end
end
