# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# R12, R13: Ruby's standard interface alone; start and stop leave nothing behind.
class InterfaceTest < Minitest::Test
  include Scheduled

  # As tracers wrap the hooks.
  WRAPPER = Module.new { def kernel_sleep(*arguments) = [arguments].each { |all| super(*all) } }

  def test_the_end_of_a_thread_runs_its_scheduled_fibers
    done = []
    in_thread do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        sleep 0.001
        done << 1
      end
      done << 0
    end

    assert_equal [0, 1], done
  end

  def test_run_returns_when_nothing_is_left
    in_thread do
      scheduler = Heddle::Scheduler.new
      Fiber.set_scheduler(scheduler)
      done = false
      Fiber.schedule do
        sleep 0.001
        done = true
      end
      scheduler.run

      assert done
      Fiber.schedule { sleep 0.001 }
      scheduler.run

      assert_equal 0, scheduler.fiber_count
    end
  end

  def test_close_is_idempotent_and_a_closed_scheduler_says_so
    scheduler = Heddle::Scheduler.new
    2.times { scheduler.close }

    assert_predicate scheduler, :closed?
    error = assert_raises(RuntimeError) { scheduler.kernel_sleep(0) }
    assert_match(/closed/, error.message)
  end

  def test_a_running_loop_refuses_to_be_run_or_closed_and_continues
    events = []
    scheduled do |scheduler|
      sleep 0
      [-> { scheduler.run }, -> { scheduler.close }].each do |attempt|
        assert_raises(ThreadError, &attempt)
        elsewhere = Thread.new(&attempt)
        elsewhere.report_on_exception = false
        assert_raises(ThreadError) { elsewhere.value }
      end
      Fiber.schedule { events << :later }
      sleep 0.001
      events << :end
    end
    assert_equal %i[later end], events
  end

  def test_a_block_is_run_at_once_until_it_waits
    order = []
    scheduled do
      Fiber.schedule do
        order << 1
        sleep 0
        order << 3
      end
      order << 2
    end

    assert_equal [1, 2, 3], order
  end

  def test_schedule_returns_the_fiber_and_it_ends
    scheduled do
      fiber = Fiber.schedule { :done }

      assert_instance_of Fiber, fiber
      until_true { !fiber.alive? }
    end
  end

  def test_scheduled_fibers_are_not_blocking
    scheduled { refute_predicate Fiber.current, :blocking? }
  end

  def test_fiber_storage_is_inherited_as_a_copy
    scheduled do
      Fiber[:heddle_test] = 1
      seen = nil
      Fiber.schedule do
        seen = Fiber[:heddle_test]
        Fiber[:heddle_test] = 2
      end

      assert_equal 1, seen
      assert_equal 1, Fiber[:heddle_test]
    end
  end

  def test_an_unhandled_failure_is_reported_and_ends_only_its_own_fiber
    done = false
    _, errors = capture_io do
      scheduled do
        Fiber.schedule { raise "lost" }
        sleep 0
        done = true
      end
    end

    assert done
    assert_match(/terminated with exception.*lost/m, errors)
  end

  # As Thread#join does.
  def test_run_and_close_raise_the_first_unhandled_failure_after_all_fibers_have_ended
    %i[run close].each do |method|
      done = []
      scheduler = Heddle::Scheduler.new
      thread = Thread.new do
        Fiber.set_scheduler(scheduler)
        %w[first second].each { |text| Fiber.schedule { raise text } }
        Fiber.schedule do
          sleep 0.001
          done << 1
        end
        scheduler.public_send(method)
      end
      thread.report_on_exception = false
      error = nil
      capture_io { error = assert_raises(RuntimeError) { thread.join(LIMIT) } }

      assert_equal "first", error.message
      assert_equal [1], done
    end
  end

  def test_exit_in_a_fiber_ends_the_program_with_its_status
    out, status = ruby(<<~RUBY)
      require "heddle/scheduler"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        sleep
      ensure
        puts "cleaned"
      end
      Fiber.schedule { exit 3 }
    RUBY
    assert_equal 3, status.exitstatus, out
    assert_equal "cleaned\n", out
  end

  def test_every_thread_has_its_own_loop
    values = Array.new(4) do |i|
      Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new)
        result = []
        3.times do |n|
          Fiber.schedule do
            sleep 0.001
            result << (i * 10) + n
          end
        end
        Fiber.set_scheduler(nil)
        result.sort
      end
    end.map(&:value)

    assert_equal Array.new(4) { |i| [i * 10, (i * 10) + 1, (i * 10) + 2] }, values
  end

  def test_a_scheduler_refuses_to_be_used_by_another_thread
    scheduled do |scheduler|
      error = Thread.new do
        scheduler.spawn(-> {})
      rescue ThreadError => e
        e
      end.value

      assert_match(/another thread/, error.message)
    end
  end

  def test_a_thousand_starts_and_stops_leave_nothing_behind
    start = proc { scheduled { Fiber.schedule { sleep 0 } } }
    start.call
    GC.start
    descriptors = Dir.children("/proc/self/fd").size
    threads = Thread.list.size
    1_000.times(&start)
    GC.start

    assert_operator Dir.children("/proc/self/fd").size, :<=, descriptors
    assert_equal threads, Thread.list.size
  end

  def test_a_dropped_scheduler_gives_its_descriptors_back
    skip "only /proc tells" unless File.directory?("/proc/self/fd")
    count = -> { Dir.children("/proc/self/fd").size }
    before = count.call
    50.times { Thread.new { Heddle::Scheduler.new.kernel_sleep(0) }.join }
    4.times { GC.start }

    assert_operator count.call, :<, before + 50
  end

  def test_deadlock_is_an_error_and_not_a_hang
    out, status = ruby(<<~RUBY)
      require "heddle/scheduler"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { Queue.new.pop }
      begin
        Fiber.scheduler.run
      rescue Heddle::DeadlockError => e
        puts e.message
      end
    RUBY
    assert_predicate status, :success?, out
    assert_match(/nothing can wake them/, out)
  end

  def test_an_endless_sleep_is_not_a_deadlock
    out, status = ruby(<<~RUBY)
      require "heddle/scheduler"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      $stdout.sync = true
      Fiber.schedule { sleep }
      Fiber.schedule { condition = ConditionVariable.new; (lock = Mutex.new).synchronize { condition.wait(lock) } }
      trap(:ALRM) { puts "alarm"; exit! 0 }
      spawn("sleep 0.2; kill -ALRM \#{Process.pid}")
      Fiber.scheduler.run
    RUBY
    assert_predicate status, :success?, out
    assert_equal "alarm\n", out
  end

  def test_an_endless_sleep_is_not_a_deadlock_when_a_module_wraps_the_hook
    scheduled do |scheduler|
      scheduler.singleton_class.prepend(WRAPPER)
      asleep = Fiber.schedule { sleep }

      assert_nil scheduler.__send__(:on_deadlock)
    ensure
      asleep.kill
    end
  end

  def test_to_wait_for_a_condition_is_a_deadlock_where_a_module_wraps_the_hook
    scheduled do |scheduler|
      scheduler.singleton_class.prepend(WRAPPER)
      waiting = Fiber.schedule do
        (lock = Mutex.new).synchronize { ConditionVariable.new.wait(lock) }
      end

      assert_raises(Heddle::DeadlockError) { scheduler.__send__(:on_deadlock) }
    ensure
      waiting.kill
    end
  end

  def test_require_of_the_scheduler_loads_no_rack
    out, = ruby('require "heddle/scheduler"; p $LOADED_FEATURES.grep(/rack/).size, defined?(Heddle::Task).inspect')

    assert_equal "0\n\"nil\"\n", out
  end

  def test_without_a_block_fiber_says_so
    scheduled { |scheduler| assert_raises(LocalJumpError) { scheduler.fiber } }
  end

  def test_every_ractor_can_have_its_own_loop
    out, status = ruby(<<~RUBY, flags: ["-W:no-experimental"])
      require "heddle/scheduler"
      ractors = 2.times.map do |i|
        Ractor.new(i) do |number|
          scheduler = Heddle::Scheduler.new
          Fiber.set_scheduler(scheduler)
          result = []
          reader, writer = IO.pipe
          Fiber.schedule { result << reader.gets }
          Fiber.schedule { sleep 0.01; writer.puts("ractor \#{number}"); writer.close }
          Fiber.schedule { File.read("#{__FILE__}") } # a blocking operation, of which Ruby asks the scheduler
          scheduler.run
          [scheduler.selector, result]
        end
      end
      ractors.each { |ractor| p(ractor.respond_to?(:value) ? ractor.value : ractor.take) }
    RUBY
    assert_predicate status, :success?, out
    assert_equal 2, out.scan(/:(?:epoll|select|kqueue), \["ractor \d\\n"\]/).size, out
  end

  # The program ends by exit!, since Ruby may crash in an ordinary exit after threads that it moved (without a loop,
  # too: in 30 of 1,200 runs on a busy machine).
  def test_every_thread_can_have_its_own_loop_when_ruby_moves_threads_about
    out, status = ruby(<<~RUBY, env: { "RUBY_MN_THREADS" => "1" })
      require "heddle/scheduler"
      threads = 3.times.map do
        Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          50.times { Fiber.schedule { sleep 0.0001; Thread.pass; sleep 0 } }
        end
      end
      threads.each(&:join)
      puts "done"
      $stdout.flush
      exit!(0)
    RUBY
    assert_predicate status, :success?, out
    assert_equal "done", out.lines.last.chomp
  end

  # Ruby's own list of vacant stacks is not safe for that before 4.0: it crashed in one run of three.
  def test_fibers_begin_and_end_in_several_ractors_at_once
    out, status = ruby(<<~RUBY, flags: ["-W:no-experimental"])
      require "heddle/scheduler"
      def Object.work(number)
        ended = 0
        8.times do |round|
          scheduler = Heddle::Scheduler.new
          Fiber.set_scheduler(scheduler)
          60.times { Fiber.schedule { sleep 0.0001; Fiber.schedule { sleep 0; ended += 1 } } }
          GC.start if round % 3 == number
          scheduler.run
          Fiber.set_scheduler(nil)
        end
        ended
      end
      ractors = 3.times.map { |number| Ractor.new(number) { |number| Object.work(number) } }
      p Object.work(3), *ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    assert_predicate status, :success?, out
    assert_equal "480\n" * 4, out
  end
end
