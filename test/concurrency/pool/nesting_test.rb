# frozen_string_literal: true

require "concurrency/support/loop_helpers"

# A task that checks out again while a task around it, or it itself, holds one.
class PoolNestingTest < Minitest::Test
  include Heddle::LoopHelpers

  def pool(max) = Heddle::Pool.new(max:, timeout: 60) { Object.new }

  def test_a_task_that_holds_all_and_asks_for_another_gets_an_error_with_both_places
    in_loop do
      things = pool(1)
      first = __LINE__ + 1
      things.with do
        error = assert_raises(Heddle::Pool::NestedCheckoutError) { things.with { flunk } }
        assert_includes error.message, "at #{__FILE__}:#{first}; another task, which it waits for, requests a " \
                                       "resource at #{__FILE__}:#{first + 1}."
      end
      assert_equal [1, 0, 1], [things.idle, things.waiting, things.statistics[:nested]]
    end
  end

  def test_a_child_in_a_scope_inside_the_block_gets_the_error_at_once
    in_loop do
      things = pool(1)
      assert_raises(Heddle::Pool::NestedCheckoutError) do
        things.with { Heddle.scope { |scope| scope.async { things.with { flunk } } } }
      end
    end
  end

  def test_a_grandchild_that_is_waited_for_gets_the_error
    in_loop do
      things = pool(1)
      Heddle.supervise(on_failure: ->(*) {}) do
        assert_raises(Heddle::Pool::NestedCheckoutError) do
          things.with { Heddle.async { Heddle.scope { Heddle.async { things.with { flunk } }.value } }.value }
        end
      end
    end
  end

  def test_a_waiting_child_gets_the_error_when_its_parent_begins_to_wait_for_it
    in_loop do
      things = pool(1)
      Heddle.supervise(on_failure: ->(*) {}) do
        things.with do
          child = Heddle.async { things.with { flunk } }
          turns
          assert_equal 1, things.waiting
          assert_raises(Heddle::Pool::NestedCheckoutError) { child.value }
        end
      end
    end
  end

  def test_one_of_several_parents_that_hold_all_resources_gets_the_error
    in_loop do
      things = pool(3)
      errors = Heddle.map(1..3) do
        things.with { turns && Heddle.scope { |scope| scope.async { things.with { :served } } } && nil }
      rescue Heddle::Pool::NestedCheckoutError => e
        e
      end

      assert_equal 1, errors.compact.size, "one gives way, and the others are served"
    end
  end

  def test_a_child_of_the_scope_outside_the_block_waits_until_the_block_ends
    in_loop do
      things = pool(1)
      child = things.with { Heddle.async { things.with { :served } }.tap { turns } }

      assert_equal :served, child.value
    end
  end

  def test_a_child_is_served_by_what_a_stranger_holds
    in_loop do
      things = pool(2)
      stranger = Heddle.async { things.with { turns(20) } }
      turns
      _, err = capture_io do
        assert_equal :served, things.with { Heddle.scope { |scope| scope.async { things.with { :served } }.value } }
      end
      assert_match(/a task waits for a connection at .+nesting_test.rb:\d+.+ waits for it, already holds one,/, err)
      stranger.wait
    end
  end

  def test_where_one_may_come_back_a_look_asks_each_task_that_waits_once
    in_loop do
      things = pool(3)
      gate = Heddle::Promise.new
      tasks = Array.new(23) { Heddle.async { things.with { gate.wait } } }
      turns
      asked = 0
      asking = TracePoint.new(:call) { |point| asked += 1 if point.method_id == :blocks? }
      asking.enable { things.send(:check_waiting) }
      gate.resolve
      tasks.each(&:wait)

      assert_equal 20, asked
    end
  end

  def test_a_waiter_without_a_waiting_holder_is_checked_against_no_holder
    in_loop do
      things = pool(3)
      gate = Heddle::Promise.new
      asked = 0
      asking = TracePoint.new(:call) { |point| asked += 1 if point.method_id == :blocks? }
      tasks = asking.enable { Array.new(23) { Heddle.async { things.with { gate.wait } } }.tap { turns } }
      assert_equal [3, 20], [things.busy, things.waiting]
      gate.resolve
      tasks.each(&:wait)

      assert_equal 0, asked
    end
  end

  def test_a_resource_acquired_in_an_enumerators_block_belongs_to_the_task
    in_loop do
      things = pool(1)
      rows = Enumerator.new { |row| things.with { row << 1 } }
      rows.next
      assert_raises(Heddle::Pool::NestedCheckoutError) do
        Heddle.scope { |scope| scope.async { things.with { flunk } } }
      end
      assert_raises(StopIteration) { rows.next }
      assert_equal [0, :served], [things.busy, Heddle.scope { |scope| scope.async { things.with { :served } }.value }]
    end
  end
end
