# frozen_string_literal: true

require "test_helper"
require "heddle"

# A fiber that was entered by Fiber#transfer ends inside a task. Ruby then switches to the root fiber, which runs the
# loop; the loop continues with the task (ext/heddle/scheduler/foreign_return.c).
class TransferTest < Minitest::Test
  def test_a_transferred_fiber_returns_its_value_to_the_task
    assert_equal([[:value, 0], [:value, 1]], Heddle.run { Array.new(2) { |i| Fiber.new { [:value, i] }.transfer } })
  end

  def test_an_exception_of_a_transferred_fiber_is_raised_in_the_task
    message = Heddle.run do
      Fiber.new { raise "meant" }.transfer
    rescue RuntimeError => e
      e.message
    end

    assert_equal "meant", message
  end

  def test_an_exit_of_a_transferred_fiber_is_raised_in_the_task
    status = Heddle.run do
      Fiber.new { exit 3 }.transfer
    rescue SystemExit => e
      e.status
    end

    assert_equal 3, status
  end

  def test_a_transferred_fiber_may_wait_before_it_ends
    values = Heddle.run do
      returns = Heddle.async { Array.new(3) { |i| Fiber.new { wait_then { i } }.transfer } }
      raises = Heddle.async { waited_error }
      [returns.value, raises.value]
    end

    assert_equal [[0, 1, 2], "meant"], values
  end

  def test_the_task_continues_with_its_own_waits
    assert_equal(3, Heddle.run { [Fiber.new { 1 }.transfer, wait_then { 2 }].sum })
  end

  def test_a_chain_of_transfers_ends_in_the_task
    value = Heddle.run do
      outer = Fiber.new { [Fiber.new { :inner }.transfer, :never] }
      outer.transfer
    end

    assert_equal :inner, value
  end

  def test_fibers_may_transfer_back
    values = Heddle.run do
      task = Fiber.current
      other = Fiber.new { |number| (task.transfer(number + 1) * 2).then { |last| last } }
      [other.transfer(1), other.transfer(10)]
    end

    assert_equal [2, 20], values
  end

  def test_an_exception_finds_the_fiber_that_the_task_has_resumed
    message = Heddle.run do
      Fiber.new do
        Fiber.new { raise "meant" }.transfer
      rescue RuntimeError => e
        e.message
      end.resume
    end

    assert_equal "meant", message
  end

  def test_a_value_for_a_fiber_that_the_task_has_resumed_is_an_error
    assert_raises(FiberError) { Heddle.run { Fiber.new { Fiber.new { 1 }.transfer }.resume } }
  end

  def test_before_anything_runs_the_loop
    values = []
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        values << Fiber.new { 1 }.transfer
        sleep 0.001
        values << Fiber.new { wait_then { 2 } }.transfer
      end
      values << :after
    end.join

    assert_equal [1, :after, 2], values
  end

  private

  def wait_then
    sleep 0.001
    yield
  end

  def waited_error
    Fiber.new { wait_then { raise "meant" } }.transfer
  rescue RuntimeError => e
    e.message
  end
end
