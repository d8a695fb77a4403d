# frozen_string_literal: true

require_relative "support/loop_helpers"

class ConditionTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_signal_wakes_the_one_that_has_waited_longest
    log = []
    in_loop do
      condition = Heddle::Condition.new
      3.times { |i| Heddle.async { condition.wait && log << i } }
      turns
      assert condition.signal
      turns
      assert_equal [0], log
      assert_equal 2, condition.broadcast
      turns
      refute condition.signal
    end

    assert_equal [0, 1, 2], log
  end

  def test_wait_gives_up_after_its_timeout
    in_loop do
      condition = Heddle::Condition.new
      assert_nil condition.wait(timeout: 0.001)
      assert_equal 0, condition.waiting
    end
  end

  def test_signal_to_one_that_is_cancelled_at_that_moment_goes_to_the_next
    in_loop do
      condition = Heddle::Condition.new
      victim = Heddle.async { condition.wait }
      other = Heddle.async { condition.wait }
      turns
      condition.signal
      victim.cancel
      assert other.value
      assert_predicate victim, :cancelled?
    end
  end
end
