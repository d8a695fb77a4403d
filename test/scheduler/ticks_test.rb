# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# A13: each ready fiber gets one turn before any gets two; which fiber waits on behalf of others.
class TurnsTest < Minitest::Test
  include Scheduled

  # Counts the turns that another fiber gets while the block waits.
  def turns_while
    turns = 0
    done = false
    Fiber.schedule do
      until done
        turns += 1
        Fiber.scheduler.yield
      end
    end
    yield
    done = true
    turns
  end

  # Two fibers that do nothing but to hand an item to and fro until the block is true.
  def hand_over(there, back, &done)
    Fiber.schedule do
      while (item = there.pop)
        back << item
      end
    end
    Fiber.schedule do
      there << (back.pop + 1) until done.call
      there.close
    end
  end

  def io_event
    IO.pipe do |reader, writer|
      Fiber.schedule { writer.write("x") }
      reader.readpartial(1)
      :io
    end
  end

  # A13: who becomes ready during a turn runs in the next one.
  def test_each_ready_fiber_runs_once_a_turn
    order = []
    scheduled do |scheduler|
      3.times do |i|
        scheduler.spawn(lambda do
          3.times do
            order << i
            scheduler.yield
          end
        end)
      end
    end

    assert_equal [0, 1, 2] * 3, order
  end

  # They switch to each other without the loop in between, as long as it has nothing to do.
  def test_two_fibers_that_wake_each_other_do_not_starve_others
    came = []
    scheduled do |scheduler|
      hand_over(there = Thread::Queue.new, Thread::Queue.new) { came.size == 4 }
      from_thread = Thread::Queue.new
      Fiber.schedule { came << from_thread.pop }
      Thread.new { from_thread << :thread }
      Fiber.schedule { sleep(0.001) && came << :timer }
      Fiber.schedule { came << io_event }
      scheduler.spawn(-> { came << :spawned })
      there << 0
    end

    assert_equal %i[io spawned thread timer], came.sort
  end

  # Not one turn for all of a thousand that are started.
  def test_a_fiber_that_starts_many_gives_the_others_a_turn_after_sixteen
    scheduled do
      scheduler = Fiber.scheduler
      scheduler.yield

      others = turns_while { 64.times { Fiber.schedule { scheduler.park(0) } } }

      assert_equal 4, others - 1
    end
  end

  # With nobody ready it goes on, and what sleeps goes on sleeping: they can all be alive at once.
  def test_a_fiber_that_starts_many_sleepers_continues_at_once
    scheduled do |scheduler|
      sleep 0.001 # what the selector itself waits for is with the kernel
      before = scheduler.statistics[:ticks]
      sleepers = Array.new(100) { Fiber.schedule { sleep } }

      turns = scheduler.statistics[:ticks] - before
      sleepers.each { |fiber| scheduler.unblock(nil, fiber) }

      assert_operator turns, :<=, 1
    end
  end

  def test_io_that_is_ready_gets_a_turn_while_many_are_started
    scheduled do |scheduler|
      reader, writer = IO.pipe
      received = nil
      Fiber.schedule { received = reader.readpartial(1) }
      writer.write("x")
      started = 0
      until received || started == 1_000
        Fiber.schedule { nil }
        started += 1
      end

      assert_operator started, :<=, 64
      assert_equal "x", received
      [reader, writer].each(&:close)
      assert_equal 0, scheduler.statistics[:armed]
    end
  end

  def test_a_wait_in_a_nested_fiber_and_in_an_enumerator
    result = scheduled do
      numbers = Enumerator.new do |yielder|
        3.times do |i|
          sleep 0.001
          yielder << i
        end
      end
      nested = Fiber.new do
        sleep 0.001
        Fiber.yield :half
        sleep 0.001
        :whole
      end
      [numbers.next, nested.resume, numbers.next, nested.resume, numbers.next]
    end

    assert_equal [0, :half, 1, :whole, 2], result
  end

  def test_a_fiber_of_the_programs_own_waits_outside_of_any_scheduled_one
    in_thread do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      ran = []
      Fiber.schedule do
        sleep 0.001
        ran << :scheduled
      end
      value = Fiber.new(blocking: false) do
        sleep 0.001 until ran == [:scheduled]
        ran << :own
        :value
      end.resume

      assert_equal :value, value
      assert_equal %i[scheduled own], ran
    end
  end

  def test_other_fibers_run_while_one_waits
    scheduled do
      turns = Thread::Queue.new
      Fiber.schedule do
        3.times do |turn|
          Fiber.scheduler.yield
          turns << turn
        end
      end

      assert_equal [0, 1, 2], Array.new(3) { turns.pop }
    end
  end
end
