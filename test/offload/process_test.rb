# frozen_string_literal: true

require_relative "support/offloaded"

# Processes fork and end while native calls are under way.
class OffloadProcessTest < Minitest::Test
  include Offloaded

  def test_a_forked_child_calls_while_its_parents_calls_are_under_way
    output = offloading <<~RUBY
      Heddle.run do
        call = Heddle.async { NativeCalls.meet(2) }
        sleep 0.001 until NativeCalls.inside == 1
        pid = fork do
          Heddle.run { 3.times.map { |i| Heddle.async { NativeCalls.set_errno(i) } }.each(&:value) }
          Heddle.run { p NativeCalls.same_thread? }
          $stdout.flush
          exit!(0)
        end
        Process.wait(pid)
        p $?.exitstatus
        NativeCalls.meet(2)
        p call.value
      end
    RUBY

    assert_equal "false\n0\n:met\n", output
  end

  def test_the_child_of_a_fiber_continues_and_calls
    output = offloading <<~RUBY
      Heddle.run do
        NativeCalls.set_errno(1)
        pid = Process.fork
        if pid
          Process.wait(pid)
          p $?.exitstatus
        else
          p NativeCalls.set_errno(2)
          sleep 0.001
          p NativeCalls.set_errno(3)
          p NativeCalls.same_thread?
        end
      end
    RUBY

    assert_equal "[2, true]\n[3, true]\nfalse\n0\n", output
  end

  def test_a_child_forked_in_a_callback_gets_a_thread_error
    output = offloading <<~RUBY
      Heddle.run do
        pid = nil
        begin
          NativeCalls.call_back(1) { pid = Process.fork }
          Process.wait(pid)
          p $?.exitstatus
        rescue ThreadError => e
          $stdout.write(e.message[/forked/] + "\\n")
          $stdout.flush
          exit!(3)
        end
      end
    RUBY

    assert_equal "forked\n3\n", output
  end

  def test_the_process_ends_while_calls_are_under_way
    took = seconds do
      offloading(<<~RUBY, status: true)
        Heddle.run do
          5.times { Heddle.async { NativeCalls.sleep_for(60) } }
          3.times { Heddle.async { NativeCalls.meet(60) } }
          sleep 0.001 until NativeCalls.inside == 3
          exit
        end
      RUBY
    end

    assert_operator took, :<, 30
  end

  def test_the_process_ends_while_a_loop_of_another_thread_calls
    took = seconds do
      offloading(<<~RUBY)
        Thread.new { Heddle.run { NativeCalls.meet(60); abort "not ended" } }
        Thread.pass until NativeCalls.inside == 1
      RUBY
    end

    assert_operator took, :<, 30
  end

  def test_an_interrupt_ends_calls_and_a_second_one_does_not_wait_for_callbacks
    output, status = ruby(<<~RUBY)
      require "heddle"
      Heddle.enable(:offload, allow: "native_calls")
      require #{NativeCallsLibrary.path.dump}
      begin
        Heddle.run do
          cleans_up = false
          Heddle.async { NativeCalls.call_back(1) { begin; sleep; ensure; cleans_up = true; sleep; end } }
          Heddle.async { NativeCalls.meet(9) }
          sleep 0.001 until NativeCalls.inside == 1
          Thread.new do
            Process.kill(:INT, Process.pid)
            Thread.pass until cleans_up
            Process.kill(:INT, Process.pid)
          end
          sleep
        end
      rescue Interrupt
        GC.start
        # The second interrupt does not wait for the cancelled call, which would last for 8 s by itself.
        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 5
        Thread.pass until NativeCalls.inside.zero? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
        p NativeCalls.inside
      end
    RUBY

    assert_predicate status, :success?, output
    assert_equal "0\n", output
  end

  def test_rubys_crash_report_names_what_is_intercepted
    output = offloading("$stderr.reopen($stdout); Process.kill(:SEGV, Process.pid); sleep", status: nil)

    assert_match(/Heddle: native calls intercepted for offload \(on/, output)
    assert_match(/rb_thread_call_without_gvl.* in:\n(?:  .*\n)*  .*native_calls/, output)
    assert_match(/dlopen in Ruby itself: yes/, output)
  end

  def test_idle_threads_do_not_hide_a_deadlock
    output = offloading <<~RUBY
      begin
        Heddle.run do
          NativeCalls.set_errno(1)
          Fiber.scheduler.park
        end
      rescue Heddle::DeadlockError
        puts "deadlock"
      end
    RUBY

    assert_equal "deadlock\n", output
  end
end
