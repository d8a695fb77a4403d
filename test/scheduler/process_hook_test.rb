# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "open3"

# R6, A5: child processes don't block the loop, and no child of other code is reaped.
class ProcessHookTest < Minitest::Test
  include Scheduled

  def test_five_children_run_at_once
    { system: -> { system("sleep 0.2") }, backticks: -> { `sleep 0.2` }, wait: -> { Process.wait(spawn("sleep 0.2")) },
      popen: -> { IO.popen("sleep 0.2", &:read) }, open3: -> { Open3.capture2e("sleep 0.2") } }.each do |name, run|
      started = 0
      most = 0
      scheduled do
        5.times do
          Fiber.schedule do
            started += 1
            most = [most, started].max
            run.call
            started -= 1
          end
        end
      end

      assert_equal 5, most, name.to_s
    end
  end

  def test_the_status_is_the_childs
    scheduled do
      refute system("exit 3")
      assert_equal 3, $?.exitstatus # rubocop:disable Style/SpecialGlobalVars
      _, status = Process.wait2(spawn("kill -9 $$"))

      assert_equal 9, status.termsig
    end
  end

  def test_any_child_and_a_group_can_be_waited_for
    scheduled do
      pid = spawn("exit 4", pgroup: true)

      assert_equal pid, Process.wait(-pid)
      other = spawn("exit 5")

      assert_equal other, Process.wait(-1)
      assert_equal 5, $?.exitstatus # rubocop:disable Style/SpecialGlobalVars
    end
  end

  def test_waiting_for_one_leaves_the_others_to_their_own_waiters
    scheduled do
      first = spawn("exit 1")
      second = spawn("exit 2")

      assert_equal 2, Process.wait2(second).last.exitstatus
      assert_equal 1, Process.wait2(first).last.exitstatus
    end
  end

  def test_a_process_that_is_not_a_child_is_an_error
    scheduled do
      assert_raises(Errno::ECHILD) { Process.wait(1) }
      assert_raises(Errno::ECHILD) { Process.wait(2**22) }
    end
  end

  def test_a_stopped_child_is_seen_when_asked_for
    scheduled do
      pid = spawn("kill -STOP $$; exit 0")
      _, status = Process.wait2(pid, Process::WUNTRACED)

      assert_predicate status, :stopped?
      Process.kill(:CONT, pid)
      Process.wait(pid)
    end
  end

  def test_detach_gives_a_thread_that_can_be_joined
    scheduled { assert_equal 6, Process.detach(spawn("exit 6")).value.exitstatus }
  end

  def test_no_thread_is_used
    scheduled do
      before = Thread.list
      Fiber.schedule { system("sleep 0.1") }

      assert_equal before, Thread.list
    end
  end

  # fiber-scheduler trap 3: a child has a copy of the parent's loop and must not touch what they share.
  def test_a_forked_child_has_a_loop_of_its_own_and_the_parents_continues
    reader, writer = IO.pipe
    scheduled do |scheduler|
      ticks = 0
      Fiber.schedule do
        50.times do
          sleep 0.001
          ticks += 1
        end
      end
      pid = fork do
        reader.close
        sleep 0.01
        results = []
        fibers = Array.new(2) { |i| Fiber.schedule { sleep(0.001) && results << i } }
        sleep 0.001 while fibers.any?(&:alive?)
        writer.write("#{results.sort.inspect} ticks=#{ticks} fibers=#{scheduler.fiber_count}")
        writer.close
        exit! 0
      end
      writer.close

      assert_equal "[0, 1] ticks=0 fibers=1", reader.read
      Process.wait(pid)

      assert_predicate $?, :success? # rubocop:disable Style/SpecialGlobalVars
      until_true { ticks == 50 }
    end
  end

  def test_a_child_forked_before_the_loop_runs_does_not_run_the_parents_program
    out, status = ruby(<<~RUBY)
      $stdout.sync = true
      require "heddle/scheduler"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        pid = fork do
          seen = []
          Fiber.schedule { seen << 1 }
          Fiber.schedule { sleep 0.001; seen << 2 }
          sleep 0.001 until seen.size == 2
          print "child \#{seen}\n"
        end
        Process.wait(pid)
      end
      print "program\n" # in a fiber, puts writes the line's end by itself
    RUBY
    assert_predicate status, :success?, out
    assert_equal ["child [1, 2]", "program"], out.lines(chomp: true).sort
  end

  def test_a_forked_child_ends_its_block_and_exits
    out, status = ruby(<<~RUBY)
      require "heddle/scheduler"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        Fiber.schedule { sleep 0.05; puts "parent only" }
        Process.wait(fork { sleep 0.01; puts "child"; $stdout.flush })
        p $?.exitstatus
        $stdout.flush
      end
    RUBY
    assert_predicate status, :success?, out
    assert_equal ["0", "child", "parent only"], out.split("\n").sort
  end
end
