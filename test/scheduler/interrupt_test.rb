# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# Interrupts, Fiber#raise, Thread#raise and signals leave the loop consistent.
class InterruptTest < Minitest::Test
  include Scheduled

  # fiber-scheduler trap 9: the raiser must not be abandoned.
  def test_raise_at_a_waiting_fiber_does_not_lose_the_raiser
    order = []
    scheduled do
      waiting = Fiber.schedule do
        sleep
      rescue IndexError
        order << :raised
        sleep 0.001
        order << :raised_waited
      end
      waiting.raise(IndexError)
      order << :raiser_goes_on
      until_true { order.include?(:raised_waited) }
    end

    assert_equal %i[raised raised_waited raiser_goes_on], order.sort
    assert_equal :raised, order.first
  end

  def test_a_woken_fiber_that_is_raised_at_runs_once
    runs = 0
    scheduled do |scheduler|
      waiting = Fiber.schedule do
        scheduler.block(:test)
        runs += 100
      rescue IndexError
        runs += 1
        scheduler.yield
      end
      scheduler.unblock(:test, waiting)
      waiting.raise(IndexError)
      3.times { scheduler.yield }
    end

    assert_equal 1, runs
  end

  def test_interrupt_ends_the_wait_a_fiber_is_in
    outcome = nil
    scheduled do |scheduler|
      fiber = Fiber.schedule do
        sleep
      rescue IndexError => e
        outcome = e.message
      end

      assert scheduler.interrupt(fiber, IndexError.new("now"))
    end

    assert_equal "now", outcome
  end

  def test_interrupt_of_a_fiber_that_does_not_wait_is_raised_at_its_next_wait
    steps = []
    scheduled do |scheduler|
      scheduler.interrupt(Fiber.current, IndexError.new("later"))
      steps << :goes_on
      begin
        sleep 0.001
        steps << :not_interrupted
      rescue IndexError
        steps << :interrupted
      end
      sleep 0.001
      steps << :waits_again
    end

    assert_equal %i[goes_on interrupted waits_again], steps
  end

  def test_an_interrupt_can_be_taken_back
    scheduled do |scheduler|
      error = IndexError.new("no")
      scheduler.interrupt(Fiber.current, error)

      assert_same error, scheduler.uninterrupt(Fiber.current)
      sleep 0.001
    end
  end

  def test_interrupt_of_an_ended_fiber_is_false
    scheduled do |scheduler|
      fiber = Fiber.schedule { nil }

      refute scheduler.interrupt(fiber, IndexError.new)
      assert_raises(TypeError) { scheduler.interrupt(Fiber.current, "text") }
    end
  end

  def test_interrupt_reaches_a_fiber_nested_in_the_scheduled_one
    outcome = nil
    scheduled do |scheduler|
      fiber = Fiber.schedule do
        Enumerator.new { sleep }.next
      rescue IndexError => e
        outcome = e.message
      end
      scheduler.interrupt(fiber, IndexError.new("inside"))
    end

    assert_equal "inside", outcome
  end

  def test_current_names_the_job_also_in_nested_fibers
    seen = []
    job = lambda do
      seen << Fiber.scheduler.current
      seen << Fiber.new { Fiber.scheduler.current }.resume
      sleep 0.001
      seen << Fiber.scheduler.current
    end
    scheduled do |scheduler|
      other = -> { 5.times { sleep 0.001 } }
      scheduler.spawn(other)
      scheduler.spawn(job)
    end

    assert_equal [job, job, job], seen
  end

  def test_thread_raise_reaches_the_program_and_the_fibers_end_in_order
    cleaned = []
    error = nil
    started = Queue.new
    thread = Thread.new do
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      3.times do |i|
        Fiber.schedule do
          started << true if i == 2
          sleep
        ensure
          sleep 0.001
          cleaned << i
        end
      end
      scheduler.run
    rescue IndexError => e
      error = e
    end
    started.pop
    until_true { thread.stop? }
    thread.raise(IndexError, "stop")
    assert thread.join(LIMIT)

    assert_equal "stop", error.message
    assert_equal [0, 1, 2], cleaned.sort
  end

  def test_a_killed_thread_ends_its_loop
    started = Queue.new
    cleaned = false
    thread = Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        started << true
        sleep
      ensure
        cleaned = true
      end
      Fiber.scheduler.run
    end
    started.pop
    until_true { thread.stop? }
    thread.kill

    assert thread.join(LIMIT)
    assert cleaned
  end

  def signal_program(body)
    <<~RUBY
      $stdout.sync = true
      require "heddle/scheduler"
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      begin
        Fiber.schedule { #{body} }
        Fiber.schedule do
          sleep 0.01 # the loop runs now
          puts "waiting"
        end
        scheduler.run
      rescue Interrupt
        puts "interrupted"
      end
    RUBY
  end

  def signalled(program)
    require "open3"
    Open3.popen2e(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", program) do |_, out, thread|
      lines = []
      while (line = out.gets)
        lines << line.chomp
        Process.kill(:INT, thread.pid) if line.match?(/waiting|cleaning/)
      end
      return lines, thread.value
    end
  end

  def test_ctrl_c_cancels_the_fibers_which_may_clean_up
    lines, status = signalled(signal_program("begin; sleep 100; ensure; sleep 0.01; puts 'clean'; end"))

    assert_equal %w[waiting clean interrupted], lines
    assert_predicate status, :success?
  end

  def test_a_second_ctrl_c_ends_at_once
    lines, = signalled(signal_program("begin; sleep 100; ensure; puts 'cleaning'; sleep 100; puts 'never'; end"))

    assert_equal %w[waiting cleaning interrupted], lines.first(3)
    refute_includes lines, "never"
  end

  def test_a_signal_handler_runs_while_the_loop_sleeps
    out, status = ruby(<<~RUBY)
      require "heddle/scheduler"
      queue = Queue.new
      trap(:USR1) { queue << :signal }
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { p queue.pop(timeout: 10) }
      Fiber.schedule { Process.kill(:USR1, Process.pid) }
    RUBY
    assert_predicate status, :success?, out
    assert_equal ":signal\n", out
  end
end
