# frozen_string_literal: true

require_relative "support/loop_helpers"
require "timeout"

class TimeoutTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_ends_a_long_sleep_after_its_time
    in_loop do
      took = seconds { assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.1) { sleep 10 } } }
      assert_operator took, :>=, 0.1
      assert_operator took, :<, 10, "as long as the sleep"
    end
  end

  def test_returns_the_value_of_a_block_that_is_in_time
    assert_equal :value, in_loop { Heddle.timeout(10) { turns && :value } }
  end

  def test_nested_limits_unwind_the_right_frame
    log = []
    in_loop do
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.01) do
          Heddle.timeout(10) { forever }
        rescue Heddle::TimeoutError
          log << :inner_was_not_over
        end
      end
      Heddle.timeout(10) do
        assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.01) { forever } }
        log << :outer_goes_on
        turns
      end
    end

    assert_equal [:outer_goes_on], log
  end

  def test_equal_limits_raise_one_error
    in_loop do
      error = assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.005) { Heddle.timeout(0.005) { forever } }
      end
      assert_match(/0\.005 s/, error.message)
      turns
    end
  end

  def test_no_rescue_in_the_block_catches_it
    in_loop do
      assert_raises(Heddle::TimeoutError) do
        Heddle.timeout(0.005) do
          forever
        rescue => e # rubocop:disable Style/RescueStandardError
          flunk("caught #{e.inspect}")
        end
      end
    end
  end

  def test_a_block_that_is_cancelled_before_its_time_is_over_hears_the_reason
    { "cancelled: a task of this scope failed" => ->(_scope) { Heddle.async { raise KeyError, "x" } },
      "cancelled: the time limit of 60 s" => ->(scope) { Heddle.async { scope.cancel } },
      "the time limit of 0 s is over" => nil }.each do |reason, ending|
      message = nil
      in_loop do
        Heddle.timeout(ending ? 60 : 0) do |scope|
          ending&.call(scope)
          forever
        rescue Heddle::Cancelled => e
          message = e.message
          raise
        end
      rescue KeyError, Heddle::TimeoutError
        nil
      end

      assert_operator message, :start_with?, reason
    end
  end

  def test_is_a_timeout_error_of_ruby
    assert_operator Heddle::TimeoutError, :<, Timeout::Error
  end

  def test_cancels_what_was_started_in_it
    child = nil
    in_loop do
      assert_raises(Heddle::TimeoutError) { Heddle.timeout(0.005) { child = Heddle.async { forever } } }
    end

    assert_equal :cancelled, child.state
  end

  def test_does_not_raise_after_its_block
    in_loop do
      Heddle.timeout(2) { turns }
      sleep 2.1
      Heddle.timeout(0.001) do # over before the block ends, but there is no wait in it
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) - start < 0.003
      end
      sleep 0.005
    end
  end

  def test_an_expired_timeout_raises_at_the_first_wait
    in_loop do
      log = []
      [0, -1, -0.5].each do |seconds|
        assert_raises(Heddle::TimeoutError) do
          Heddle.timeout(seconds) do
            log << :begins
            turns
            log << :never
          end
        end
      end
      assert_equal [:begins] * 3, log
      assert_equal :value, Heddle.timeout(0) { :value }
      turns
    end
  end

  def test_nil_and_infinity_are_no_limit
    in_loop do
      assert_equal 1, Heddle.timeout(nil) { turns && 1 }
      assert_equal 2, Heddle.timeout(Float::INFINITY) { turns && 2 }
      assert_raises(ArgumentError) { Heddle.timeout(Float::NAN) {} }
      assert_raises(ArgumentError) { Heddle.timeout("1") {} }
    end
  end

  def test_error_of_the_block_passes
    assert_raises(KeyError) { in_loop { Heddle.timeout(10) { raise KeyError } } }
  end

  def test_timeout_of_ruby_works_beside_it
    in_loop do
      assert_raises(Timeout::Error) { Timeout.timeout(0.01) { Heddle.timeout(10) { forever } } }
      error = assert_raises(Timeout::Error) { Heddle.timeout(0.01) { Timeout.timeout(10) { forever } } }
      assert_instance_of Heddle::TimeoutError, error
      turns
    end
  end

  def test_thousands_that_are_in_time_leave_nothing
    in_loop do
      5_000.times { Heddle.timeout(30) { nil } }
      Heddle.map(1..500) { |i| Heddle.timeout(30 + (i % 7)) { turns(1) } }
      turns
      assert_equal 1, Fiber.scheduler.fiber_count
    end
  end

  def test_outside_a_loop_says_how_to_start_one
    error = assert_raises(Heddle::NoLoopError) { Heddle.timeout(1) {} }
    assert_match(/Heddle\.timeout: this thread runs no event loop.*Heddle\.run/, error.message)
  end
end
