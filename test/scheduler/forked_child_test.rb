# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# A child that a fiber forks ends as it does in a program without a loop: with the status that it says, by signals, and
# after its handlers of at_exit.
class ForkedChildTest < Minitest::Test
  include Scheduled

  LOOPS = {
    "Heddle.run" => "Heddle.run { block.call }",
    "Fiber.schedule" => "Fiber.set_scheduler(Heddle::Scheduler.new); Fiber.schedule(&block); Fiber.scheduler.run",
    "no loop" => "block.call"
  }.freeze

  ENDS = {
    "exit" => ["exit", nil, 0],
    "exit 3" => ["exit 3", nil, 3],
    "abort" => ["abort", nil, 1],
    "sleep, exit 3" => ["sleep 0.001; exit 3", nil, 3],
    "sleep, raise" => ["sleep 0.001; raise 'meant'", nil, 1],
    "read, exit 3" => ["r, w = IO.pipe; Thread.new { w.close }; r.read; exit 3", nil, 3],
    "at_exit" => ["at_exit { exit 4 }; sleep 0.001; exit 3", nil, 4],
    "fibers, exit 3" => ["Fiber.schedule { sleep } if Fiber.scheduler; sleep 0.001; exit 3", nil, 3],
    "sleep, TERM" => ["ready.call; sleep", :TERM, :TERM],
    "sleep, INT" => ["ready.call; sleep", :INT, :INT],
    "sleep, trap" => ["trap(:USR1) { exit 5 }; ready.call; sleep", :USR1, 5],
    "read, trap" => ["trap(:USR1) { exit 5 }; ready.call; IO.pipe.first.read", :USR1, 5],
    "compute, trap" => ["trap(:USR1) { exit 5 }; ready.call; loop {}", :USR1, 5],
    "join, trap" => ["trap(:USR1) { exit 5 }; ready.call; Thread.new { sleep }.join", :USR1, 5]
  }.freeze

  LOOPS.each do |name, code|
    define_method(:"test_every_end_of_a_child_of_#{name.tr(" .", "__").downcase}") do
      out, status = ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        block = lambda do
          #{ENDS.inspect}.each do |name, (code, signal)|
            reader, writer = IO.pipe
            ready = -> { writer.write("x") }
            pid = fork { $stderr.reopen(File::NULL); eval(code) }
            (reader.read(1); Process.kill(signal, pid)) if signal
            status = Process.wait2(pid).last
            puts "\#{name}: \#{status.exitstatus || Signal.signame(status.termsig)}"
          end
        end
        #{code}
      RUBY
      assert_predicate status, :success?, out
      assert_equal ENDS.map { |way, (_, _, result)| "#{way}: #{result}" }, out.lines(chomp: true)
    end
  end

  def test_handlers_of_at_exit_run_in_the_child_and_in_the_parent
    out, = in_a_loop("at_exit { puts 'handler' }; Process.wait(fork { sleep 0.001; exit 3 }); p $?.exitstatus")
    assert_equal %w[handler 3 handler], out
  end

  def test_without_a_block_the_child_ends_with_its_status
    ["exit 3", "sleep 0.001; exit 3"].each do |code|
      out, status = in_a_loop("(pid = fork) ? (Process.wait(pid); p $?.exitstatus) : (#{code})")
      assert_equal ["3"], out
      assert_predicate status, :success?
    end
  end

  def test_without_a_block_what_follows_heddle_run_continues_in_both
    ["nil", "sleep 0.001", "Fiber.schedule { sleep 0.001; puts 'fiber' }"].each do |code|
      out, status = in_a_loop("(pid = fork) ? Process.wait(pid) : (#{code}); :ended", "p [value, $$ == first]")
      assert_equal ["[:ended, false]", "[:ended, true]"], out.last(2)
      assert_predicate status, :success?
    end
  end

  def test_without_a_block_a_failure_comes_out_of_heddle_run
    out, = in_a_loop("(pid = fork) ? Process.wait(pid) : raise(IndexError, 'meant')", "p :went_on",
                     around: "rescue IndexError => e\np e.message\nexit 7")
    assert_equal ['"meant"', ":went_on"], out
  end

  # As a thread that forks: the tasks around it, and what waits for them, do not exist in the child.
  def test_without_a_block_the_process_ends_with_another_task_than_the_first
    ["nil", "sleep 0.001", "exit 3", "raise IndexError"].zip([0, 0, 3, 1]) do |code, expected|
      out, = in_a_loop(<<~RUBY, "puts 'after'")
        Heddle.async do
          $stderr.reopen(File::NULL)
          (pid = fork) ? (Process.wait(pid); p $?.exitstatus) : (#{code})
        end.wait
      RUBY
      assert_equal [expected.to_s, "after"], out
    end
  end

  # The child's program is a fiber that no loop has started: Ruby closes the scheduler on it when it has ended.
  def test_without_a_block_a_fiber_that_a_task_resumes_ends_with_its_status
    ends = { "nil" => 0, "sleep 0.001" => 0, "exit 3" => 3, "raise" => 1, "Fiber.schedule { sleep }" => 0 }
    ends.each do |code, status|
      out, = in_a_loop(<<~RUBY, "puts 'after'")
        pid = Fiber.new { fork || ($stderr.reopen(File::NULL); #{code}; nil) }.resume
        p Process.wait2(pid).last.exitstatus
      RUBY
      assert_equal [status.to_s, "after"], out, code
    end
  end

  # There the loop runs on a fiber that it has not started, in the name of the parent's task.
  def test_other_fibers_run_in_a_child_forked_by_a_resumed_fiber
    out, = in_a_loop(<<~RUBY)
      program = lambda do
        Fiber.schedule { puts "other" }
        3.times { Fiber.scheduler.yield }
        Process.wait(fork { 3.times { Fiber.scheduler.yield }; exit 3 })
        exit $?.exitstatus + 1
      end
      pid = Fiber.new { fork(&program) }.resume
      begin
        Timeout.timeout(30) { p Process.wait2(pid).last.exitstatus }
      rescue Timeout::Error
        Process.kill(:KILL, pid)
        puts "it never ends"
      end
    RUBY
    assert_equal %w[other 4], out
  end

  def test_a_child_of_a_fiber_before_the_loop_runs_is_not_the_parents_program
    out, = program(<<~RUBY)
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { (pid = fork) ? (Process.wait(pid); p $?.exitstatus) : sleep(0.001) }
      Fiber.scheduler.run
      puts "after"
    RUBY
    assert_equal %w[0 after], out
  end

  def test_a_daemon_continues
    out, = in_a_loop(<<~RUBY, "writer.puts 'after'")
      reader, writer = IO.pipe
      fork do
        reader.close
        Heddle.run { Process.daemon(true, true); sleep 0.001; writer.puts "inside" }
        writer.puts "after"
      end
      writer.close
      writer = $stdout
      puts reader.read
    RUBY
    assert_equal %w[inside after after], out
  end

  def test_fibers_of_a_child_run_at_the_same_time
    out, = in_a_loop(<<~RUBY)
      Process.wait(fork do
        first = Queue.new
        second = Queue.new
        Fiber.schedule { puts first.pop; second << "second" }
        Fiber.schedule { puts second.pop }
        task = Heddle.async { sleep 0.001; "task" }
        puts "program"
        first << "first"
        puts task.value
      end)
    RUBY
    assert_equal %w[first program second task], out.sort
    assert_equal "program", out.first
  end

  def test_a_child_of_a_child_ends_too
    out, = in_a_loop(<<~RUBY)
      Process.wait(fork { Process.wait(fork { sleep 0.001; exit 3 }); exit $?.exitstatus + 1 })
      p $?.exitstatus
    RUBY
    assert_equal ["4"], out
  end

  def test_time_limits_hold_in_a_child_of_a_program_that_has_some
    out, = in_a_loop(<<~RUBY)
      Heddle.timeout(60) do
        Process.wait(fork { Heddle.timeout(0.001) { sleep } rescue puts $!.class })
      end
    RUBY
    assert_equal ["Heddle::TimeoutError"], out
  end

  # Ruby 4.0 takes the scheduler from a forked child.
  def test_every_kind_of_child_has_a_loop
    calls = 'Heddle.async { sleep 0.001; puts "async" }.wait; Fiber.schedule { sleep 0.001; puts "scheduled" }; ' \
            'begin Heddle.timeout(0.001) { sleep }; rescue Heddle::TimeoutError; puts "timeout" end; ' \
            'begin Timeout.timeout(0.001) { sleep }; rescue Timeout::Error; puts "old" end; ' \
            'puts Fiber.current.blocking?; Thread.new { sleep 0.001; puts "thread" }.join; puts `echo shell`; ' \
            'Process.wait(spawn("echo spawned")); system("echo system")'
    expected = %w[async false old scheduled shell spawned system thread timeout]
    {
      "fork with a block" => "Process.wait(fork { CALLS })",
      "fork" => "(pid = fork) ? Process.wait(pid) : (CALLS; exit)",
      "fork in a task" => "Heddle.async { (pid = fork) ? Process.wait(pid) : (CALLS; exit) }.wait",
      "Process.fork" => "Process.wait(Process.fork { CALLS })",
      "popen" => "(io = IO.popen('-')) ? (puts io.read; io.close) : (CALLS; exit)",
      "daemon" => "r, w = IO.pipe; fork { r.close; $stdout.reopen(w); " \
                  "Heddle.async { Process.daemon(true, true); CALLS }.wait }; w.close; puts r.read",
      "a child's child" => "Process.wait(fork { Process.wait(fork { CALLS }) })"
    }.each do |kind, code|
      out, status = in_a_loop(code.sub("CALLS", calls))
      assert_equal expected, out.sort, kind
      assert_predicate status, :success?, kind
    end
  end

  def test_child_of_a_blocking_fiber_keeps_its_scheduler
    out, = program(<<~RUBY)
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Process.wait(fork { Fiber.schedule { sleep 0.001; puts "scheduled" }; p Fiber.current.blocking? })
      Fiber.schedule { Fiber.blocking { Process.wait(fork { p Fiber.current.blocking? }) }; p Fiber.current.blocking? }
    RUBY
    assert_equal %w[false scheduled true true], out.sort
  end

  private

  def in_a_loop(inside, after = "", around: "")
    program(<<~RUBY)
      $first = $$
      def first = $first
      value = writer = nil
      begin
        value = Heddle.run do
          #{inside}
        end
        #{around}
      end
      #{after}
    RUBY
  end

  # @return [Array(Array<String>, Process::Status)] lines of output, errors included
  def program(code)
    out, status = ruby("require 'heddle'\nrequire 'timeout'\n$stdout.sync = true\n#{code}")
    [out.lines(chomp: true), status]
  end
end
