# frozen_string_literal: true

require "test_helper"
require "heddle"
require "minitest/mock"

# How code finds out that Fiber#kill ends its fiber.
class UnlessKilledTest < Minitest::Test
  NO_STACK = ->(*, **) { raise FiberError, "can't alloc machine stack to fiber" }

  def test_a_killed_fiber_runs_the_other_block_each_time
    seen = []
    2.times do
      fiber = Fiber.new do
        Fiber.yield
      ensure
        Heddle::Concurrency.unless_killed(-> { seen << :killed }) { seen << :alive }
      end
      fiber.resume
      fiber.kill
    end

    assert_equal %i[killed killed], seen
  end

  def test_a_fiber_that_ends_by_itself_runs_its_block
    seen = []
    Fiber.new { Heddle::Concurrency.unless_killed(-> { seen << :killed }) { seen << :alive } }.resume

    assert_equal [:alive], seen
  end

  # At the limit of fibers.
  def test_a_healthy_fiber_is_not_taken_for_killed_where_no_fiber_gets_a_stack
    ask # the first question needs a stack
    Fiber.stub(:new, NO_STACK) { assert_equal :alive, ask }
  end

  # The block is left without an error: the pool asks whether its fiber is killed.
  def test_a_pool_serves_where_no_fiber_gets_a_stack_and_nothing_in_its_thread_has_asked_before
    Thread.new do
      Heddle.run do
        pool = Heddle::Pool.new(max: 1) { Object.new }
        Fiber.stub(:new, NO_STACK) { catch(:left) { pool.with { throw :left } } }

        assert_equal [0, 1], [pool.busy, pool.idle]
      end
    end.join
  end

  def test_a_healthy_fiber_is_not_taken_for_killed_when_even_the_first_question_gets_no_stack
    Thread.new do
      Fiber.stub(:new, NO_STACK) { assert_raises(FiberError) { ask } }
      assert_equal :alive, ask
    end.join
  end

  # An exception of another thread, or of a signal's handler.
  def test_an_exception_that_comes_at_the_question_is_not_taken_for_a_kill
    Thread.new do
      interrupted = Fiber.new { raise IndexError }
      Fiber.stub(:new, ->(**) { interrupted }) { assert_raises(IndexError) { ask } }
      assert_equal :alive, ask
    end.join
  end

  # Ruby 4.0.5 crashes where it was collected and another fiber asks.
  def test_the_fiber_that_asked_last_is_kept_until_another_asks
    Thread.new do
      asked = ObjectSpace::WeakMap.new
      10.times do |number|
        ask_in_fiber(number, asked)
        clear_stack
        GC.start

        assert_includes asked.values, number
      end
      GC.start

      assert_operator asked.size, :<, 10
    end.join
  end

  private

  def ask_in_fiber(number, asked)
    Fiber.new { ask }.tap { |fiber| asked[fiber] = number }.resume
  end

  # Values that are left on the stack count as references.
  def clear_stack(depth = 50) = depth.zero? || clear_stack(depth - 1)

  def ask = Heddle::Concurrency.unless_killed(-> { flunk "it is not killed" }) { :alive }
end
