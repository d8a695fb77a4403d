# frozen_string_literal: true

# test: each selector

require_relative "support/loop_helpers"
require "open3"
require "rbconfig"
require "tmpdir"

# Waits that can never end. Other threads could end them, so each test runs in a process of its own.
class DeadlockTest < Minitest::Test
  def test_tasks_that_wait_for_each_other_are_an_error_with_the_tree_and_the_lines
    out = run_ruby(<<~RUBY)
      Heddle.run(name: "main") do
        first = nil
        second = Heddle.async(name: "second") { first.wait }
        first = Heddle.async(name: "first") { second.wait }
      end
    RUBY

    assert_match(/deadlock: every task waits.*\(Heddle::DeadlockError\)/, out)
    assert_match(/^main \(waiting\)$/, out)
    assert_match(/^  second \(waiting\)\n      program\.rb:3:in/, out)
    assert_match(/^  first \(waiting\)\n      program\.rb:4:in/, out)
  end

  def test_tasks_clean_up_before_the_error_is_raised
    out = run_ruby(<<~RUBY)
      channel = Heddle::Channel.new
      begin
        Heddle.run do
          channel.pop
        ensure
          sleep 0.001
          puts "cleaned up"
        end
      rescue Heddle::DeadlockError
        puts "deadlock"
      end
    RUBY

    assert_equal "cleaned up\ndeadlock\n", out
  end

  def test_queue_and_mutex_of_ruby_count_too
    out = run_ruby(<<~RUBY)
      begin
        Heddle.run { Thread::Queue.new.pop }
      rescue Heddle::DeadlockError
        puts "queue"
      end
      begin
        Heddle.run do
          a, b = Thread::Mutex.new, Thread::Mutex.new
          Heddle.async { a.synchronize { sleep(0); b.synchronize { } } }
          Heddle.async { b.synchronize { sleep(0); a.synchronize { } } }
        end
      rescue Heddle::DeadlockError
        puts "mutex"
      end
    RUBY

    assert_equal "queue\nmutex\n", out
  end

  # Reading a file starts a thread that runs such calls, and that then idles: it can't wake anybody.
  def test_is_detected_after_files_were_read
    out = run_ruby(<<~RUBY)
      begin
        Heddle.run { File.read("program.rb") && Fiber.scheduler.park }
      rescue Heddle::DeadlockError
        puts "deadlock"
      end
    RUBY

    assert_equal "deadlock\n", out
  end

  def test_waiting_for_time_io_threads_and_children_is_none
    out = run_ruby(<<~RUBY)
      Heddle.run do
        Heddle.async { sleep 0.01 }
        reader, writer = IO.pipe
        Heddle.async { reader.gets }
        Heddle.async { system("exit 0") }
        queue = Thread::Queue.new
        Thread.new { queue.pop }
        Heddle.async { Thread.new { sleep 0.01; queue << 1 }.join; writer.puts }
      end
      puts "done"
    RUBY

    assert_equal "done\n", out
  end

  private

  def run_ruby(program)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "program.rb"), program)
      command = ["timeout", "20", RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-rheddle", "program.rb"]
      out, = Open3.capture2e(*command, chdir: folder)
      out
    end
  end
end
