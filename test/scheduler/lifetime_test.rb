# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "timeout"

# What a program may do to fibers whose records the loop keeps: kill them early, keep them for later, leave blocks of
# theirs open. None of this may touch freed memory.
class LifetimeTest < Minitest::Test
  include Scheduled

  def test_a_fiber_may_raise_at_the_one_that_has_just_started_it
    events = []
    scheduled do
      5.times do
        Fiber.schedule do
          parent = Fiber.current
          Fiber.schedule do
            parent.raise("struck")
            GC.start
            sleep 0.001
            events << :child
          end
        rescue RuntimeError => e
          events << e.message
        end
      end
    end
    assert_equal [5, 5], [events.count("struck"), events.count(:child)]
  end

  def test_blocks_of_timeouts_in_fibers_that_take_turns_end_in_any_order
    after = scheduled do
      numbers = Enumerator.new do |yielder|
        Timeout.timeout(10) { yielder << 1 }
        yielder << 2
      end
      first = numbers.next
      second = Timeout.timeout(5) { numbers.next }
      assert_raises(StopIteration) { numbers.next }
      20.times { Fiber.new { [first, second].map(&:to_s) }.resume }
      GC.start
      sleep 0.001
      Fiber.scheduler.statistics[:timers]
    end
    assert_equal 0, after
  end

  def test_a_timeout_whose_block_an_enumerator_left_open_is_not_raised_outside
    slept = scheduled do
      100.times { Enumerator.new { |yielder| Timeout.timeout(0.02) { yielder << 1 } }.next }
      3.times do
        GC.start
        20.times { Fiber.new { "x" * 100 }.resume }
      end
      started = now
      sleep 0.06
      now - started
    end
    assert_operator slept, :>=, 0.06
  end

  def test_a_timeout_is_raised_when_the_enumerator_waits_again
    scheduled do
      numbers = Enumerator.new do |yielder|
        Timeout.timeout(0.01) do
          yielder << 1
          sleep
        end
      rescue Timeout::Error
        yielder << :struck
      end
      assert_equal 1, numbers.next
      sleep 0.02
      assert_equal :struck, numbers.next
    end
  end

  def test_a_fiber_killed_before_its_turn_never_runs_and_stops_no_other
    events = []
    scheduled do |scheduler|
      scheduler.spawn(-> { events << :killed }).kill
      scheduler.spawn(-> { events << :other })
    end
    assert_equal [:other], events
  end

  def test_a_killed_job_is_reported
    job = Class.new do
      attr_reader :error

      def call = nil
      def unstarted(error) = @error = error
    end.new
    scheduled { |scheduler| scheduler.spawn(job).kill }
    assert_instance_of Heddle::Cancelled, job.error
  end

  def test_a_fiber_that_waits_in_the_name_of_one_that_has_ended
    out, = ruby(<<~RUBY)
      require "heddle/scheduler"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      left = Fiber.schedule do
        Fiber.new { 5.times { sleep 0.002 }; puts "went on" }.transfer
        puts "came back"
      end
      # Nobody switches back to this one: at the end the loop says so.
      Fiber.schedule { sleep 0.001; left.transfer }
      Fiber.schedule { sleep 0.003; 20.times { Fiber.schedule { sleep 0.001 } } }
      begin
        scheduler.run
      rescue Heddle::DeadlockError
        $stdout.flush
        exit!
      end
    RUBY
    assert_equal ["came back", "went on"], out.lines(chomp: true)
  end

  def test_fibers_of_a_closed_scheduler_may_still_be_ended
    out, status = ruby(<<~RUBY)
      require "heddle/scheduler"
      require "timeout"
      kept = nil
      Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Heddle::Scheduler.new)
        stubborn = -> { begin; sleep; ensure; begin; sleep; ensure; puts "unwound"; end; end }
        kept = Fiber.schedule { Timeout.timeout(50) { stubborn.call } }
        Fiber.schedule { begin; sleep; ensure; raise Interrupt; end }
        Fiber.schedule { sleep 0.001; raise Interrupt }
        begin
          Fiber.set_scheduler(nil)
        rescue Interrupt
          puts "given up"
        end
        GC.start
        kept.kill
        GC.start
        puts kept.alive?
      end.join
    RUBY
    assert_predicate status, :success?, out
    assert_equal ["given up", "unwound", "false"], out.lines(chomp: true), out
  end

  def test_a_child_may_end_the_parents_fibers
    statuses = scheduled do |scheduler|
      waiting = Fiber.schedule { Timeout.timeout(9) { sleep 0.05 } }
      queued = scheduler.spawn(-> {})
      pid = fork do
        waiting.kill
        queued.resume
        GC.start
        sleep 0.001
        exit!(waiting.alive? || queued.alive? ? 1 : 0)
      end
      Process.wait2(pid).last
    end
    assert_predicate statuses, :success?
  end
end
