# frozen_string_literal: true

require_relative "support/loop_helpers"

class BarrierTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_all_wait_for_the_last_and_learn_their_place
    log = []
    in_loop do
      barrier = Heddle::Barrier.new(3)
      places = Heddle.map(1..3) do |n|
        turns(n)
        log << :comes
        place = barrier.wait
        log << :goes
        place
      end
      assert_equal [0, 1, 2], places
    end

    assert_equal %i[comes comes comes goes goes goes], log
  end

  def test_can_be_used_again
    in_loop do
      barrier = Heddle::Barrier.new(2)
      rounds = Heddle.map(1..2) { Array.new(3) { barrier.wait } }
      assert_equal([1, 1, 1], rounds.transpose.map(&:sum))
    end
  end

  def test_a_party_that_times_out_or_is_cancelled_does_not_count
    in_loop do
      barrier = Heddle::Barrier.new(2)
      assert_raises(Heddle::TimeoutError) { barrier.wait(timeout: 0.001) }
      victim = Heddle.async { barrier.wait }
      turns
      victim.cancel
      victim.wait
      first = Heddle.async { barrier.wait }
      turns
      assert_equal 1, barrier.waiting
      assert_equal 1, barrier.wait
      assert_equal 0, first.value
    end
  end

  def test_numbers_are_distinct_after_a_task_has_timed_out
    in_loop do
      barrier = Heddle::Barrier.new(3)
      first = Heddle.async { assert_raises(Heddle::TimeoutError) { barrier.wait(timeout: 0.01) } }
      second = Heddle.async { barrier.wait }

      assert_equal "only 2 of 3 tasks reached the barrier within 0.01 s", first.value.message
      third = Heddle.async { barrier.wait }
      turns

      assert_equal [2, 0, 1], [barrier.wait, second.value, third.value]
      assert_equal 0, barrier.waiting
    end
  end

  def test_a_barrier_of_one_never_waits
    assert_equal 0, Heddle::Barrier.new(1).wait
    assert_raises(ArgumentError) { Heddle::Barrier.new(0) }
  end
end
