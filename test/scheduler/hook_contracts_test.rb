# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "heddle/offload"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"

# The hooks as each version of Ruby calls them, called directly: a Ruby tests the contracts of the others, too.
class HookContractsTest < Minitest::Test
  include Scheduled

  READ = 0
  WRITE = 1
  PREAD = 2
  PWRITE = 3
  AT_LEAST = 2
  AT_MOST = 3
  AGAIN = -Errno::EAGAIN::Errno

  # An operation as Ruby 4.0 hands it over.
  class Operation
    def initialize(&work) = @work = work
    def call = @work.call
  end

  def transfer(version, hook, *arguments)
    Fiber.scheduler.__send__(:transfer_as, version, hook, *arguments)
  end

  def buffer(text = "." * 8) = IO::Buffer.new(text.bytesize).tap { |buffer| buffer.set_string(text) }

  def each_pair
    [IO.pipe, UNIXSocket.pair].each do |reader, writer|
      yield reader, writer
    ensure
      [reader, writer].each(&:close)
    end
  end

  # -- blocking_operation_wait --

  def test_operation_with_call_only_runs_on_another_thread_while_others_run
    gate = Queue.new
    scheduled do |scheduler|
      thread = nil
      operation = Operation.new do
        gate.pop
        thread = Thread.current
      end
      fiber = Fiber.schedule { Heddle::Scheduler::BlockingOperations.run(scheduler, operation) }
      gate << true
      until_true { !fiber.alive? }

      refute_same Thread.current, thread
    end
  end

  def test_operation_with_call_only_is_called_where_it_must_not_leave_the_thread
    scheduled do |scheduler|
      threads = []
      Heddle::Offload::Switch.inline do
        Heddle::Scheduler::BlockingOperations.run(scheduler, Operation.new { threads << Thread.current })
      end

      assert_equal [Thread.current], threads
    end
  end

  def test_exception_of_an_operation_with_call_only_is_raised_in_its_fiber
    scheduled do |scheduler|
      operation = Operation.new { raise IndexError, "inside" }

      assert_raises(IndexError) { Heddle::Scheduler::BlockingOperations.run(scheduler, operation) }
    end
  end

  if RUBY_VERSION >= "4.0"
    def test_ruby_runs_an_operation_in_place_when_the_hook_returns_without_having_executed_it
      idle = Class.new(Heddle::Scheduler) { def blocking_operation_wait(_operation) = nil }
      scheduled(idle.new) do
        Tempfile.create("in place") do |file|
          File.write(file.path, "text")

          assert_equal "text", File.read(file.path)
        end
      end
    end

    # Ruby's own unblocking function repeats its signal until the thread runs Ruby again.
    def test_cancelled_operation_does_not_interrupt_the_next_one_of_its_thread
      scheduled do
        Dir.mktmpdir do |folder|
          File.mkfifo("#{folder}/fifo")
          20.times do
            assert_raises(Timeout::Error) { Timeout.timeout(0.005) { File.open("#{folder}/fifo") } }
            reader = Fiber.schedule { File.open("#{folder}/fifo").close }
            sleep 0.03
            File.open("#{folder}/fifo", "w").close
            until_true { !reader.alive? }
          end
        end
      end
    end
  end

  # -- io_read and io_write up to Ruby 4.0: (length, offset), at least so many bytes --

  def test_length_is_the_least_before_the_change_of_the_contract
    scheduled do
      each_pair do |reader, writer|
        bytes = buffer
        feeder = Fiber.schedule { %w[ab cd].each { |part| writer.syswrite(part) && sleep(0.001) } }
        read = transfer(AT_LEAST, READ, reader, bytes, 4, 1)

        assert_equal 4, read
        assert_equal ".abcd", bytes.get_string(0, 5)
        assert_equal 3, transfer(AT_LEAST, WRITE, writer, buffer("12345"), 3, 2)
        until_true { !feeder.alive? }
      end
    end
  end

  # -- from Ruby 4.1 on: (offset, length), one transfer of at most so many bytes --

  def test_length_is_the_most_since_the_change_of_the_contract
    scheduled do
      each_pair do |reader, writer|
        bytes = buffer

        assert_equal 5, transfer(AT_MOST, WRITE, writer, buffer("hello world"), 6, 5)
        assert_equal 3, transfer(AT_MOST, READ, reader, bytes, 1, 3)
        assert_equal ".wor....", bytes.get_string
        assert_equal 2, transfer(AT_MOST, READ, reader, bytes, 0, 8)
        assert_equal "ldor....", bytes.get_string
      end
    end
  end

  def test_hook_returns_eagain_without_waiting_since_the_change_of_the_contract
    scheduled do
      each_pair do |reader, writer|
        switches = Fiber.scheduler.statistics[:switches]
        2.times { assert_equal AGAIN, transfer(AT_MOST, READ, reader, buffer, 0, 8) }
        much = buffer("x" * 100_000)
        sizes = []
        sizes << transfer(AT_MOST, WRITE, writer, much, 0, 100_000) until sizes.last == AGAIN

        assert_equal switches, Fiber.scheduler.statistics[:switches]
        assert_empty(sizes[0...-1].grep_v(1..100_000))
      end
    end
  end

  def test_length_of_zero_transfers_nothing_since_the_change_of_the_contract
    scheduled do
      each_pair do |reader, writer|
        writer.syswrite("kept")

        assert_equal 0, transfer(AT_MOST, READ, reader, buffer, 0, 0)
        assert_equal 0, transfer(AT_MOST, WRITE, writer, buffer, 0, 0)
        assert_equal "kept", reader.readpartial(10)
      end
    end
  end

  def test_end_of_file_is_zero_since_the_change_of_the_contract
    scheduled do
      each_pair do |reader, writer|
        writer.close

        assert_equal 0, transfer(AT_MOST, READ, reader, buffer, 0, 8)
      end
    end
  end

  def test_closed_other_end_is_an_error_number_since_the_change_of_the_contract
    scheduled do
      each_pair do |reader, writer|
        reader.close

        assert_equal(-Errno::EPIPE::Errno, transfer(AT_MOST, WRITE, writer, buffer, 0, 8))
      end
    end
  end

  def test_files_are_read_and_written_at_their_position_and_elsewhere
    scheduled do
      Tempfile.create("positions") do |file|
        bytes = buffer

        assert_equal 5, transfer(AT_MOST, WRITE, file, buffer("hello world"), 0, 5)
        assert_equal 3, transfer(AT_MOST, PWRITE, file, buffer("abcdef"), 1, 2, 3)
        assert_equal 4, transfer(AT_MOST, PREAD, file, bytes, 1, 0, 4)
        assert_equal "cdeo", bytes.get_string(0, 4)
        assert_equal 2, transfer(AT_LEAST, PREAD, file, bytes, 3, 2, 6)
        assert_equal "eo", bytes.get_string(6, 2)
        assert_equal 0, transfer(AT_MOST, PREAD, file, bytes, 100, 0, 4)
        assert_equal(-Errno::EINVAL::Errno, transfer(AT_MOST, PREAD, file, bytes, -1, 0, 4))
      end
    end
  end

  def test_offset_beyond_the_buffer_is_rejected_by_every_contract
    scheduled do
      each_pair do |reader, _writer|
        assert_raises(ArgumentError) { transfer(AT_MOST, READ, reader, buffer, 9, 1) }
        assert_raises(ArgumentError) { transfer(AT_LEAST, READ, reader, buffer, 1, 9) }
        assert_raises(ArgumentError) { transfer(AT_MOST, READ, reader, buffer, 1) } # both are needed
      end
    end
  end

  def test_buffer_warning_is_never_shown
    output, = ruby(<<~RUBY, flags: ["-W:experimental"])
      require "heddle/scheduler"
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule do
        reader, writer = IO.pipe
        writer.write("x")
        reader.readpartial(1)
        IO::Buffer.new(1)
      end
      Fiber.set_scheduler(nil)
      puts Warning[:experimental]
    RUBY

    assert_equal "true\n", output.lines.grep_v(/fiber_interrupt/).join
  end
end
