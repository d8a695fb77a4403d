# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "socket"
require "tempfile"

# Closing an IO wakes the fibers that wait for it, and no others.
class ClosedIOTest < Minitest::Test
  include Scheduled

  # fiber-scheduler trap 2: before Ruby 4.0 nothing tells the scheduler of a close.
  def test_closing_an_io_raises_in_its_waiters
    scheduled do
      reader, _writer = IO.pipe
      error = nil
      Fiber.schedule do
        reader.read(1)
      rescue IOError => e
        error = e
      end
      reader.close
      until_true { sleep(0.001) && error }

      assert_match(/closed/, error.message)
    end
  end

  # Ruby hands the hook an IO of its own making there, with the socket's number.
  def test_closing_a_socket_raises_in_waiters_for_its_descriptor
    scheduled do
      left, _right = UNIXSocket.pair
      error = nil
      Fiber.schedule do
        left.recv_io
      rescue IOError => e
        error = e
      end
      left.close
      others = IO.pipe # one of them may have the number now
      until_true { sleep(0.001) && error }

      assert_match(/closed/, error.message)
    ensure
      others&.each(&:close)
    end
  end

  def test_a_close_by_another_thread_raises_in_waiters
    scheduled do
      reader, _writer = IO.pipe
      error = nil
      Fiber.schedule do
        reader.wait_readable
      rescue IOError => e
        error = e
      end
      gate = Queue.new
      Thread.new do
        reader.close
        gate.pop
      end
      until_true { sleep(0.01) && error }
      gate << true
    end
  end

  # Run in a process of its own, with no other threads. Prints what ends the wait, with each selector.
  CLOSED_DURING_SLEEP = <<~RUBY
    require "heddle/scheduler"
    close = nil
    trap("USR1") { close.call }
    Heddle::Selector.available.each do |selector|
      reader, writer = IO.pipe
      close = -> { reader.close }
      Fiber.set_scheduler(Heddle::Scheduler.new(selector:))
      Fiber.schedule do
        Thread.new do
          Thread.pass until Thread.main.stop?
          ARGV.first == "signal" ? Process.kill(:USR1, Process.pid) : close.call
        end
        p reader.wait_readable(Integer(ARGV.last))
      rescue IOError => e
        puts e.message
      end
      Fiber.set_scheduler(nil)
    end
  RUBY

  def test_a_close_by_a_thread_that_ends_at_once_raises_in_waiters = assert_raises_during_sleep("thread")

  # From 4.0 on, IO#close in a handler waits for the thread that it has interrupted, also without a scheduler.
  if RUBY_VERSION < "4.0"
    def test_a_close_by_a_signal_handler_raises_in_waiters = assert_raises_during_sleep("signal")
  end

  def assert_raises_during_sleep(closing)
    out, status = ruby(CLOSED_DURING_SLEEP, closing, LIMIT.to_s)

    assert_predicate status, :success?
    assert_equal Heddle::Selector.available.size, out.lines.size
    out.each_line { |line| assert_match(/\Astream closed (?:while a fiber waited for it|in another thread)$/, line) }
  end

  # In a process of its own, because every thread that runs wakes the loop.
  def test_loop_sleeps_on_while_the_thread_that_could_close_an_io_sleeps
    out, = ruby(<<~RUBY)
      require "heddle/scheduler"
      Heddle::Selector.available.each do |selector|
        reader, writer = IO.pipe
        scheduler = Heddle::Scheduler.new(selector:)
        Fiber.set_scheduler(scheduler)
        Thread.new { sleep }
        Fiber.schedule { reader.wait_readable }
        Fiber.schedule do
          before = scheduler.statistics[:waits]
          sleep 1
          puts scheduler.statistics[:waits] - before < 10
          writer.close
        end
        Fiber.set_scheduler(nil)
      end
    RUBY

    assert_equal "true\n" * Heddle::Selector.available.size, out
  end

  # Ruby >= 4.0 closes the IO when all of them have left their calls.
  def test_a_close_raises_in_fibers_of_two_loops_and_in_a_thread
    [UNIXSocket.pair, IO.pipe].each do |reader, writer|
      errors, begun = Array.new(2) { Thread::Queue.new }
      wait = lambda do |method, *arguments|
        begun << true
        reader.public_send(method, *arguments)
      rescue IOError => e
        errors << e
        3.times { sleep 0 } # nothing is left to raise at a later wait
      end
      number = reader.fileno
      other_loop = Thread.new do
        scheduled { Array.new(3) { Fiber.schedule { wait.call(:wait_readable) } } }
      end
      thread = Thread.new { wait.call(:readpartial, 1) }
      4.times { begun.pop }
      Thread.pass until thread.stop?
      scheduled do
        [[:read, 1], [:gets], [:wait_readable, LIMIT]].each { |method| Fiber.schedule { wait.call(*method) } }
        reader.close
        assert_raises(Errno::EBADF) { IO.for_fd(number, autoclose: false).close }
      end
      messages = Array.new(7) { errors.pop(timeout: LIMIT)&.message }

      messages.each { |message| assert_match(/closed/, message.to_s) }
      [thread, other_loop].each { |each| assert each.join(LIMIT) }
      writer.close
    end
  end

  # Such a fiber is in the system call itself, which has to be ended.
  def test_a_close_by_another_thread_raises_in_blocking_fibers
    waits = [->(io) { io.read(1) },
             ->(io) { Fiber.schedule { Fiber.blocking { io.read(1) } } && Fiber.scheduler.run },
             ->(io) { Fiber.scheduler.close || io.read(1) }]
    waits.each do |wait|
      capture_io do
        reader, = UNIXSocket.pair
        thread = Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          wait.call(reader)
        end
        thread.report_on_exception = false
        Thread.pass until thread.stop?
        reader.close
        assert_match(/closed/, assert_raises(IOError) { thread.join(LIMIT) }.message)
      end
    end
  end

  # Without offload the loop's thread itself waits for the lock.
  def test_a_close_by_another_thread_ends_the_wait_for_a_file_lock
    Tempfile.create("lock") do |owner|
      owner.flock(File::LOCK_EX)
      file = File.open(owner.path)
      error = waited = nil
      thread = Thread.new do
        scheduled do
          Fiber.schedule do
            file.flock(File::LOCK_EX)
          rescue IOError => e
            error = e
            sleep 0.001
            waited = true
          end
        end
      end
      Thread.pass until error || blocked_in_flock?
      file.close

      assert thread.join(LIMIT)
      assert_match(/closed/, error.message)
      assert waited
    end
  end

  # The kernel's list of locks marks those that wait.
  def blocked_in_flock? = File.read("/proc/locks").match?(/-> FLOCK .* #{Process.pid} /)

  # Ruby >= 4.0 says so itself where it closes the old file.
  REOPENED = /\Astream (?:reopened while a fiber waited for it|closed in another thread)\z/
  WAITS = [[:wait_readable], [:read, 1], [:gets], [:readpartial, 9]].freeze

  # As threads that wait. Ruby's own threads get IOError, too.
  def test_reopening_an_io_raises_in_its_waiters
    WAITS.each do |wait|
      scheduled do
        reader, writer = IO.pipe
        error = nil
        Fiber.schedule do
          reader.public_send(*wait)
        rescue IOError => e
          error = e
        end
        reader.reopen(File::NULL)
        until_true { sleep(0.001) && error }

        assert_match REOPENED, error.message
        assert_nil reader.gets
        writer.close
      end
    end
  end

  # The reopening is handled before that fiber runs and waits on.
  def test_reopening_raises_in_a_waiter_after_a_spurious_wake_up
    scheduled do
      reader, writer = IO.pipe
      other = IO.pipe
      error = nil
      fiber = Fiber.schedule do
        reader.wait_readable(LIMIT)
      rescue IOError => e
        error = e
      end
      3.times { Fiber.scheduler.yield } # until it waits in the selector
      Fiber.scheduler.unpark(fiber)
      reader.reopen(other.first) # to reopen by a path would wait
      until_true { sleep(0.001) && !fiber.alive? }

      assert_match REOPENED, error&.message
      [writer, *other].each(&:close)
    end
  end

  # The loop's own thread alone may touch its selector: a message tells it, and wakes it.
  def test_a_reopen_by_another_thread_raises_in_waiters
    in_a_loop = ->(&block) { Thread.new { scheduled { block.call } } }
    [Thread.method(:new), in_a_loop].product(WAITS) do |start, wait|
      scheduled do
        reader, writer = IO.pipe
        errors = Thread::Queue.new
        2.times do
          Fiber.schedule do
            reader.public_send(*wait)
          rescue IOError => e
            errors << e
          end
        end
        start.call { reader.reopen(File::NULL) }

        2.times { assert_match REOPENED, errors.pop(timeout: LIMIT)&.message }
        assert_nil reader.gets
        writer.close
      end
    end
  end

  def test_a_reopened_io_is_waited_for_anew
    scheduled do
      first, _first_writer = IO.pipe
      second, writer = IO.pipe
      Fiber.schedule do
        first.public_send(*WAITS.last)
      rescue IOError
        nil
      end

      assert_raises(Errno::ENOENT) { first.reopen("/nowhere/at/all") }
      assert_same first, first.reopen(second)
      second.close
      Fiber.schedule { writer << "x" }

      assert_equal "x", first.read(1)
    end
  end

  # C6: the number of a closed descriptor is given to another IO: its events are its own.
  def test_a_reused_descriptor_wakes_only_its_new_owner
    scheduled do
      old, _old_writer = IO.pipe
      number = old.fileno
      outcome = nil
      Fiber.schedule do
        old.wait_readable
        outcome = :woken
      rescue IOError
        outcome = :failed
      end
      old.close
      reader, writer = UNIXSocket.pair.partition { |io| io.fileno == number }.map(&:first) # either has either role
      skip "the kernel gave another number" unless reader
      Fiber.schedule { writer << "x" }

      assert_same reader, reader.wait_readable(LIMIT)
      until_true { outcome }

      assert_equal :failed, outcome
    end
  end

  # Trap 13: a pending poll must not keep the socket open for its peer.
  # Nor is anything read for who waits only until others, who are ready, have had their turn.
  def test_a_descriptor_that_is_reused_while_others_have_their_turn
    GC.start
    GC.disable # an IO that is garbage would give a lower number back
    scheduled do |scheduler|
      closed, peer = UNIXSocket.pair
      failure = nil
      Fiber.schedule { 3.times { scheduler.yield } }
      Fiber.schedule { failure = assert_raises(IOError) { closed.readpartial(1) } }
      number = closed.fileno
      closed.close
      reader, writer = UNIXSocket.pair
      writer.write("x")
      until_true { failure }

      assert_equal number, reader.fileno
      assert_equal "x", reader.readpartial(1)
      peer.close
    end
  ensure
    GC.enable
  end

  def test_the_peer_sees_the_close_of_a_socket_with_waiters
    scheduled do
      left, right = UNIXSocket.pair
      Fiber.schedule do
        left.read(1)
      rescue IOError
        nil
      end
      left.close

      assert_nil right.read(1)
    end
  end

  def test_a_wait_that_was_cut_short_leaves_nothing_armed
    scheduled do |scheduler|
      reader, writer = IO.pipe
      5.times do
        fiber = Fiber.schedule do
          reader.wait_readable
        rescue IndexError
          nil
        end
        fiber.raise(IndexError)
      end

      assert_equal 0, scheduler.statistics[:armed]
      writer << "x"

      assert_equal "x", reader.read(1)
    end
  end

  def test_broken_pipe_and_reset_are_raised
    scheduled do
      reader, writer = IO.pipe
      reader.close

      assert_raises(Errno::EPIPE) { writer.write("x") }
      left, right = UNIXSocket.pair
      left.close

      assert_raises(Errno::EPIPE) { right.write("x") }
    end
  end
end
