# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "io/console"
require "pty"
require "socket"
require "timeout"

# What asks whether there is something to read must not wait for it. Ruby's hook is the same for both; see
# is_caller_waiting in ext/heddle/scheduler/io_read_write_hooks.c.
class NonblockingReadTest < Minitest::Test
  include Scheduled

  def test_read_nonblock_of_an_empty_pipe_does_not_wait
    without_waiting do
      reader, writer = IO.pipe # without a reference the collector would close it
      assert_raises(IO::WaitReadable) { reader.read_nonblock(1) }
      assert_equal :wait_readable, reader.read_nonblock(1, exception: false)
      assert_equal :wait_readable, reader.read_nonblock(1, +"", exception: false)
      writer.close
    end
  end

  def test_read_nonblock_of_a_terminal_and_of_a_program_does_not_wait
    without_waiting do
      terminal, other_side = PTY.open
      assert_raises(IO::WaitReadable) { terminal.read_nonblock(1) }
      IO.popen("cat", "r+") { |program| assert_raises(IO::WaitReadable) { program.read_nonblock(1) } }
      other_side.close
    end
  end

  def test_a_loop_that_reads_until_it_would_block_ends
    read = without_waiting do
      reader, writer = IO.pipe
      writer << "abc"
      bytes = 0
      begin
        loop { bytes += reader.read_nonblock(2).bytesize }
      rescue IO::WaitReadable
        bytes
      end
    end

    assert_equal 3, read
  end

  # The read before it took all there was, so that the next one is expected to find nothing.
  def test_read_nonblock_looks_whatever_the_last_read_has_found
    scheduled do
      reader, writer = IO.pipe
      2.times do
        writer << "ab"

        assert_equal "ab", reader.readpartial(10)
      end
      writer << "cd"

      assert_equal "cd", reader.read_nonblock(10)
      assert_equal :wait_readable, reader.read_nonblock(10, exception: false)
    end
  end

  def test_a_buffer_reads_once_where_no_minimum_is_asked_for
    without_waiting do
      socket, peer = UNIXSocket.pair
      buffer = quietly { IO::Buffer.new(16) }

      assert_equal(-Errno::EAGAIN::Errno, buffer.read(socket, 0))
      peer << "abc"

      assert_equal 3, buffer.read(socket, 0)
    end
  end

  def test_getch_that_asks_whether_a_key_is_there_does_not_wait
    without_waiting do
      keyboard, terminal = PTY.open

      assert_nil terminal.getch(min: 0)
      keyboard << "k"
      until_true { keyboard.flush && terminal.getch(min: 0) == "k" }
    end
  end

  # A program may put its own method around the hook: then it is that which calls it.
  def test_an_instrumented_hook_changes_nothing
    hooks = []
    instrumented = Class.new(Heddle::Scheduler) { define_method(:io_read) { |*all| hooks << :read && super(*all) } }
    scheduled(instrumented.new) do
      reader, writer = IO.pipe
      assert_raises(IO::WaitReadable) { reader.read_nonblock(1) }
      results = []
      waiting = Fiber.schedule { results << reader.sysread(1) << reader.gets << reader.readpartial(1) << reader.read }
      "a|line\n|b|rest".split("|").each do |piece|
        sleep 0.001
        writer << piece
      end
      writer.close
      until_true { !waiting.alive? }

      assert_equal %W[a line\n b rest], results
    end
    refute_empty hooks
  end

  private

  def quietly
    verbose, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = verbose
  end

  # Nobody writes: what waits does so until the limit strikes it.
  def without_waiting(&) = scheduled { Timeout.timeout(LIMIT / 6.0, &) }
end
