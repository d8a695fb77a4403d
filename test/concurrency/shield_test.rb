# frozen_string_literal: true

require_relative "support/loop_helpers"
require "timeout"

class ShieldTest < Minitest::Test
  include Heddle::LoopHelpers

  # A task that has entered a shield and waits there until the gate opens.
  def shielded(log, gate, &around)
    around ||= ->(&block) { block.call }
    entered = Heddle::Promise.new
    task = Heddle.async do
      around.call do
        Heddle.shield { entered.resolve && gate.wait && log << :done }
        log << :not_waited
        turns
        log << :went_on
      end
    end
    entered.wait
    task
  end

  def test_a_cancellation_during_the_block_is_raised_at_the_first_wait_after_it
    log = []
    in_loop do
      gate = Heddle::Promise.new
      task = shielded(log, gate)
      task.cancel
      turns
      log << task.state
      gate.resolve(true)
      task.wait

      assert_predicate task, :cancelled?
    end

    assert_equal %i[waiting done not_waited], log
  end

  def test_a_cancellation_before_the_block_is_raised_before_it_begins
    log = []
    in_loop do
      Heddle.scope do |scope|
        scope.cancel
        Heddle.shield { log << :begun }
        log << :went_on
      end
      turns
      log << :after
    end

    assert_equal [:after], log
  end

  def test_shield_returns_the_blocks_value
    assert_equal 42, in_loop { Heddle.shield { turns && 42 } }
    assert_equal 42, Heddle.shield { 42 }, "outside of a loop"
  end

  def test_an_outer_time_limit_raises_after_the_block_and_an_inner_one_inside
    log = []
    in_loop do
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(60) do |limit|
          Heddle.shield { expire(limit) && turns && log << :whole }
          forever
        end
      end
      Heddle.shield { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.001) { forever } } }
      log << :inside
    end

    assert_equal %i[whole inside], log
  end

  def test_a_time_limit_that_is_over_only_within_the_shield_of_its_last_step_is_met
    assert_equal(:value, in_loop { Heddle.timeout(60) { |limit| Heddle.shield { expire(limit) && turns && :value } } })
  end

  def test_tasks_that_were_started_in_it_run_to_their_end
    log = []
    in_loop do
      gate = Heddle::Promise.new
      entered = Heddle::Promise.new
      task = Heddle.async do
        Heddle.shield { Heddle.async { gate.wait and log << :child } && entered.resolve }
      end
      entered.wait
      task.cancel
      turns
      gate.resolve(true)
      task.wait

      assert_predicate task, :cancelled?
    end

    assert_equal [:child], log
  end

  def test_shields_nest_and_only_the_outermost_one_ends_the_wait
    log = []
    in_loop do
      gate = Heddle::Promise.new
      task = shielded(log, gate) { |&block| Heddle.shield(&block) }
      task.cancel
      gate.resolve(true)
      task.wait
    end

    assert_equal %i[done not_waited went_on], log
  end

  def test_shield_works_in_the_clean_up_of_a_cancelled_task
    log = []
    in_loop do
      entered = Heddle::Promise.new
      task = Heddle.async do
        Heddle.scope do |scope|
          scope.cancel
          forever
        ensure
          Heddle.shield { entered.resolve && turns(10) && log << :cleaned_up }
          turns
          log << :unwound
        end
        turns
        log << :missed
      end
      entered.wait
      task.cancel
    end

    assert_equal %i[cleaned_up unwound], log
  end

  def test_a_failure_leaves_it
    log = []
    in_loop do
      assert_raises(KeyError) { Heddle.shield { raise KeyError } }
      assert_raises(KeyError) { Heddle.shield { Heddle.async { raise KeyError } && forever } }
      turns
      log << :went_on
    end

    assert_equal [:went_on], log
  end

  def test_shield_does_not_defer_timeout_timeout
    in_loop { assert_raises(Timeout::Error) { Timeout.timeout(0.001) { Heddle.shield { forever } } } }
  end

  def test_shield_without_a_block_raises_an_argument_error
    assert_raises(ArgumentError) { Heddle.shield }
  end

  private

  # As {Concurrency::Alarms} does it.
  def expire(limit) = limit.instance_variable_get(:@frame).expire
end
