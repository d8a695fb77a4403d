# frozen_string_literal: true

require "test_helper"
require "support/feeding"
require "offload/support/native_calls"
require "open3"
require "support/scheduled"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"

# What would block the thread runs on another one while only its own fiber waits.
class ThreadPoolTest < Minitest::Test
  include Scheduled
  include Feeding

  def test_work_runs_on_another_thread_and_its_value_comes_back
    scheduled do |scheduler|
      thread = scheduler.thread_pool.run { Thread.current }

      refute_same Thread.current, thread
      assert_equal "heddle offload", thread.name
    end
  end

  def test_an_exception_of_the_work_is_raised_in_the_fiber
    scheduled do |scheduler|
      error = assert_raises(IndexError) { scheduler.thread_pool.run { raise IndexError, "inside" } }

      assert_equal "inside", error.message
    end
  end

  # Ruby then starts no thread, and ends the idle ones.
  def test_work_of_another_threads_loop_runs_while_the_process_ends
    program = <<~RUBY
      require "heddle"
      ready = Thread::Queue.new
      Thread.new do
        Heddle.run do
          threads = Fiber.scheduler.thread_pool
          threads.run { nil } if ARGV == ["idle"]
          ready << true
          sleep
        ensure
          threads.run { $stdout.write("worked") }
        end
      end
      ready.pop
    RUBY
    [[], ["idle"]].each do |arguments|
      command = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-e", program, *arguments]
      output, status = Timeout.timeout(60) { Open3.capture2e(*command) }

      assert_equal ["worked", true], [output, status.success?], arguments.inspect
    end
  end

  # A fixed number of threads would deadlock: what is queued may be what ends the work under way.
  def test_work_that_waits_for_later_work_ends
    scheduled do |scheduler|
      gates = Array.new(20) { Queue.new }
      ended = 0
      gates.each_cons(2) do |own, following|
        Fiber.schedule do
          scheduler.thread_pool.run { own.pop && (following << true) }
          ended += 1
        end
      end
      scheduler.thread_pool.run { gates.first << true }
      until_true { ended == 19 }
    end
  end

  # Ruby 3.4 hands it over as a whole, and asks the scheduler from there where it has to wait.
  def test_copy_stream_waits_for_either_side
    scheduled do
      reader, writer = IO.pipe
      socket, peer = UNIXSocket.pair
      slow = Fiber.schedule { 3.times { sleep(0.002) && writer.write("y" * 1000) } && writer.close }
      copied = Fiber.schedule { IO.copy_stream(reader, socket) && socket.close }

      assert_equal "y" * 3000, peer.read
      until_true { [slow, copied].none?(&:alive?) }
    end
  end

  # The thread's wait is not this thread's: it has to hear of the exception all the same.
  def test_a_time_limit_ends_copy_stream_while_it_waits
    scheduled do
      reader, writer = IO.pipe
      5.times do
        # So it waits again while the loop waits, and no fiber runs.
        feeding(reader, writer) do
          assert_raises(Timeout::Error) { Timeout.timeout(0.1) { IO.copy_stream(reader, File::NULL) } }
        end
      end
      reader.read_nonblock(25, exception: false) # what came after the limit
      writer << "next\n"

      assert_equal "next\n", reader.gets
    end
  end

  def test_copy_stream_waits_for_room
    scheduled do
      Tempfile.create("much") do |file|
        file.write("z" * 3_000_000)
        file.flush
        socket, peer = UNIXSocket.pair
        Fiber.schedule { IO.copy_stream(file.path, socket) && socket.close }
        read = 0
        while (piece = peer.read(100_000))
          read += piece.bytesize
          sleep 0
        end

        assert_equal 3_000_000, read
      end
    end
  end

  def test_an_idle_thread_serves_again_and_close_ends_it
    pool = Heddle::Scheduler::ThreadPool.new
    first = pool.run { Thread.current }
    until_true { pool.idle == 1 }

    assert_same first, pool.run { Thread.current }
    pool.close

    refute_predicate first, :alive?
    assert_equal 0, pool.size
    assert_match(/closed/, assert_raises(ThreadError) { pool.run { nil } }.message)
  end

  def test_an_idle_thread_ends_after_a_while
    pool = Heddle::Scheduler::ThreadPool.new(idle: 0.001)
    thread = pool.run { Thread.current }

    assert thread.join(LIMIT)
    assert_equal 0, pool.size
  end

  def test_the_scheduler_ends_its_threads
    thread = scheduled { |scheduler| scheduler.thread_pool.run { Thread.current } }

    assert thread.join(LIMIT)
  end

  # The parent's idle thread must not be counted on there.
  def test_a_forked_child_has_threads_of_its_own
    scheduled do |scheduler|
      scheduler.thread_pool.run { nil }
      until_true { scheduler.thread_pool.idle == 1 }
      child = fork do
        exit!(scheduler.thread_pool.run { 3 })
      end

      assert_equal 3, Process::Status.wait(child).exitstatus
    end
  end

  # The work may use the stack of the fiber that asked, so that one must not leave before it has ended.
  def test_an_interrupted_fiber_leaves_when_its_work_has_ended
    events = []
    scheduled do |scheduler|
      fiber = Fiber.schedule do
        scheduler.thread_pool.run do
          events << :work_began
          sleep
        ensure
          events << :work_ended
        end
      rescue IndexError => e
        events << e.message
      end
      until_true { events.any? }
      scheduler.interrupt(fiber, IndexError.new("left"))
      until_true { !fiber.alive? }
      events << scheduler.thread_pool.run { :next_work }
    end

    assert_equal [:work_began, :work_ended, "left", :next_work], events
  end

  def test_a_killed_fiber_leaves_when_its_work_has_ended
    events = []
    scheduled do |scheduler|
      fiber = Fiber.schedule do
        scheduler.thread_pool.run do
          events << :work_began
          sleep
        ensure
          ending = now + 0.1
          sleep(0.001) while now < ending
          events << :work_ended
        end
      ensure
        events << :left
      end
      until_true { events.any? }
      fiber.kill
      until_true { !fiber.alive? && events.size == 3 }
    end

    assert_equal %i[work_began work_ended left], events
  end

  def test_several_interrupts_leave_the_thread_to_other_work
    scheduled do |scheduler|
      thread = ended = closed = nil
      fiber = Fiber.schedule do
        scheduler.thread_pool.run do
          thread = Thread.current
          Thread.handle_interrupt(Exception => :never) { sleep(0.001) until closed }
        end
      rescue IndexError
        ended = true
      end
      until_true { thread }
      4.times { scheduler.interrupt(fiber, IndexError.new) && 3.times { scheduler.yield } }
      closed = true
      until_true { ended && (scheduler.thread_pool.idle == 1 || !thread.alive?) }

      assert_same thread, scheduler.thread_pool.run { Thread.current }
    end
  end

  def test_interrupts_at_any_moment_end_only_their_own_work
    ended = 0
    scheduled do |scheduler|
      200.times do |i|
        fiber = Fiber.schedule do
          scheduler.thread_pool.run { Thread.pass }
        rescue IndexError
          nil
        ensure
          ended += 1
        end
        sleep 0 if i.odd?
        scheduler.interrupt(fiber, IndexError.new) if fiber.alive? && (i % 3).zero?
      end
      until_true { ended == 200 }
    end
  end

  if RUBY_VERSION >= "3.4"
    def test_a_timeout_ends_an_open_that_waits
      scheduled do
        Dir.mktmpdir do |folder|
          File.mkfifo("#{folder}/fifo")

          assert_raises(Timeout::Error) { Timeout.timeout(0.05) { File.open("#{folder}/fifo") } }
        end
      end
    end

    def test_quick_operations_of_ruby_stay_on_the_loops_thread
      scheduled do |scheduler|
        Dir.mktmpdir do |folder|
          File.stat(folder)
          File.exist?("#{folder}/none")
          Dir.children(folder)
          Dir.mkdir("#{folder}/one")
        end

        assert_equal 0, scheduler.thread_pool.size
      end
    end

    def test_signal_handler_reads_a_file
      output, = ruby(<<~RUBY)
        require "heddle/scheduler"
        scheduler = Heddle::Scheduler.new
        Fiber.set_scheduler(scheduler)
        Fiber.schedule do
          read = nil
          trap("USR1") { read = File.read(File::NULL) }
          Process.kill("USR1", Process.pid)
          scheduler.yield until read
          p read
        end
        Fiber.set_scheduler(nil)
      RUBY

      assert_equal "\"\"\n", output.lines.grep_v(/fiber_interrupt/).join
    end

    # Nothing intercepts the callback: it runs on the thread that makes the call.
    def test_exception_in_a_callback_of_an_operation_is_raised_in_the_fiber
      output, = ruby(<<~RUBY, NativeCallsLibrary.path)
        require "heddle/scheduler"
        require ARGV.first
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Thread.abort_on_exception = true
        Fiber.schedule do
          callbacks = [proc { raise IndexError, "called back" }]
          callbacks << proc { Thread.current.kill } if RUBY_VERSION >= "4"
          callbacks.each do |callback|
            2.times do
              NativeCalls.call_back_safely(1, &callback)
            rescue IndexError, ThreadError => e
              GC.start
              puts e.message
            end
          end
          p NativeCalls.call_back_safely(2) { |number| number }
        end
        Fiber.set_scheduler(nil)
      RUBY

      expected = ["called back"] * 2
      expected += ["the offload thread was killed while a native call ran a callback in it"] * 2 if RUBY_VERSION >= "4"

      assert_equal [*expected, "[1, 2, true]"], output.lines(chomp: true).grep_v(/fiber_interrupt/)
    end

    # Opening a FIFO waits for its other end, which another fiber of the same loop opens.
    def test_a_fifo_is_opened_from_both_ends
      scheduled do
        Dir.mktmpdir do |folder|
          File.mkfifo("#{folder}/fifo")
          heard = nil
          Fiber.schedule { heard = File.read("#{folder}/fifo") }
          File.write("#{folder}/fifo", "through")
          until_true { heard }

          assert_equal "through", heard
        end
      end
    end

    def test_operations_are_known_by_the_method_that_asks
      operations = Heddle::Scheduler::BlockingOperations

      %w[File.stat File.exist? Dir.children Dir#each IO#close File.unlink FileTest.size].each do |label|
        assert_operator operations, :inline?, label
      end
      ["IO#flock", "File.open", "File#initialize", "IO#read", "Zlib::Deflate#deflate", "IO.copy_stream", "close",
       "Socket#close", ""].each do |label|
        refute_operator operations, :inline?, label
      end
    end
  end
end
