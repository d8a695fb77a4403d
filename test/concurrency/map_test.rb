# frozen_string_literal: true

require_relative "support/loop_helpers"

class MapTest < Minitest::Test
  include Heddle::LoopHelpers

  def test_keeps_the_order_whatever_ends_first
    result = in_loop { Heddle.map([3, 1, 2]) { |n| turns(n * 3) && n * 10 } }

    assert_equal [30, 10, 20], result
  end

  # Enumerator.produce has an infinite size, and ends with StopIteration.
  def test_takes_the_items_of_an_enumerator_without_its_size
    count_down = Enumerator.produce(3) { |n| n.zero? ? raise(StopIteration) : n - 1 }
    queried = Enumerator.new(-> { flunk "size may be a query" }) { |found| found << 1 }

    assert_equal [6, 4, 2, 0], in_loop { Heddle.map(count_down) { |n| n * 2 } }
    assert_equal [2], in_loop { Heddle.map(queried) { |n| n * 2 } }
  end

  def test_runs_all_at_once_without_a_limit
    in_loop do
      barrier = Heddle::Barrier.new(50)
      assert_equal (0..49).to_a, Heddle.map(1..50) { barrier.wait }.sort
    end
  end

  def test_never_runs_more_than_the_limit
    running = most = 0
    result = in_loop do
      Heddle.map(1..20, limit: 3) do |n|
        most = [most, running += 1].max
        turns(n % 4)
        running -= 1
        n
      end
    end

    assert_equal (1..20).to_a, result
    assert_equal 3, most
  end

  def test_asks_a_lazy_enumerable_for_no_more_than_can_run
    asked = 0
    in_loop do
      assert_raises(KeyError) do
        Heddle.map((1..).lazy.map { |n| asked = n }, limit: 2) { |n| n == 5 ? raise(KeyError) : turns }
      end
    end

    assert_operator asked, :<, 10
  end

  def test_first_failure_cancels_the_others_and_is_raised
    cancelled = 0
    in_loop do
      assert_raises(KeyError) do
        Heddle.map(1..5) do |n|
          turns(1)
          raise KeyError if n == 3

          forever
        rescue Heddle::Cancelled
          cancelled += 1
          raise
        end
      end
    end

    assert_equal 4, cancelled
  end

  def test_of_nothing_is_nothing
    assert_equal [], in_loop { Heddle.map([]) { flunk } }
  end

  def test_results_may_be_nil_and_items_arrays
    assert_equal [nil, [1, 2]], in_loop { Heddle.map([[nil], [1, 2]]) { |item| item.size == 1 ? nil : item } }
  end

  def test_needs_a_block_and_a_sensible_limit
    in_loop do
      assert_raises(ArgumentError) { Heddle.map([]) }
      assert_raises(ArgumentError) { Heddle.map([1], limit: 0) {} }
    end
  end
end
