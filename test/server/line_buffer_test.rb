# frozen_string_literal: true

require "test_helper"
require "heddle/server"

class LineBufferTest < Minitest::Test
  # Remembers each write, and may be slow or broken.
  class Stream
    attr_reader :writes
    attr_accessor :hook

    def initialize = @writes = []

    def write(text)
      hook&.call
      @writes << text.dup
    end
  end

  def setup
    @stream = Stream.new
    @buffer = Heddle::Server::LineBuffer.new(@stream)
  end

  def test_the_first_line_is_written_without_a_delay
    written = Thread::Queue.new
    @stream.hook = -> { written << true }
    @buffer.define_singleton_method(:sleep) { |_| Thread.stop }
    @buffer.start
    @buffer.write("one\n")

    assert written.pop(timeout: 10)
  end

  def test_without_a_loop_each_line_is_written_at_once
    2.times { |number| @buffer.write("#{number}\n") }

    assert_equal %W[0\n 1\n], @stream.writes
  end

  def test_in_a_loop_lines_are_written_together
    Heddle.run do
      @buffer.start
      written = Thread::Queue.new
      @stream.hook = -> { written << true }
      10.times { |number| @buffer.write("#{number}\n") }

      assert_empty @stream.writes
      written.pop

      assert_equal [10], @stream.writes.map { |text| text.lines.size }
      @buffer.write("later\n")
      written.pop

      assert_equal "later\n", @stream.writes.last
      @buffer.stop
    end
  end

  def test_the_rest_is_written_at_the_end
    Heddle.run do
      @buffer.start
      @buffer.write("last\n")
      @buffer.stop
      @buffer.write("after\n")
    end

    assert_equal %W[last\n after\n], @stream.writes
  end

  def test_a_log_that_is_not_read_loses_lines_and_says_so
    Heddle.run do
      @buffer.start
      2_000.times { @buffer.write("#{"x" * 999}\n") }
      @buffer.stop
    end
    lines = @stream.writes.join.lines

    assert_operator lines.size, :<, 1_100
    assert_equal "lost #{2_000 - lines.size + 1} lines of the log: it is read too slowly\n", lines.last
  end

  def test_a_log_that_is_not_read_delays_the_end_for_a_limited_time
    Heddle.run do
      @buffer.start
      @stream.hook = -> { sleep }
      @buffer.write("x\n")
      Heddle.timeout(30) { @buffer.stop }
    end

    assert_empty @stream.writes
  end

  def test_a_broken_log_does_not_stop_the_server
    @stream.hook = -> { raise Errno::EPIPE }
    @buffer.write("x\n")

    assert_empty @stream.writes
  end

  def test_lines_that_a_full_disk_has_lost_are_counted_when_it_has_room_again
    @stream.hook = -> { raise Errno::ENOSPC }
    Heddle.run do
      @buffer.start
      @buffer.write("one\n")
      @buffer.write("two\n")
      @buffer.stop
      @buffer.write("three\n")
    end
    @stream.hook = nil
    @buffer.write("four\n")
    @buffer.write("five\n")

    assert_equal "\nfour\nlost 3 lines of the log: No space left on device\nfive\n", @stream.writes.join
  end

  def test_lines_that_are_lost_while_a_loss_is_reported_are_counted_in_the_next_report
    full = "#{"x" * 1_048_576}\n"
    @buffer = Heddle::Server::LineBuffer.new(@stream) do |lines, _reason|
      @buffer.write(full) if @stream.writes.empty?
      "lost #{lines}\n"
    end
    written = Thread::Queue.new
    @stream.hook = -> { written << true }
    @buffer.start
    2.times { @buffer.write(full) }
    written.pop(timeout: 5)
    @buffer.stop

    assert_equal ["lost 2\n", "lost 1\n"], @stream.writes
  end

  def test_a_stream_that_is_not_read_blocks_one_call_only_and_counts_what_it_loses
    read = Thread::Queue.new
    @stream.hook = -> { read.pop }
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    2_500.times { @buffer.write("#{"x" * 999}\n") }

    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :<, 10
    read << true
    read << true
    @buffer.stop until @stream.writes.size == 2
    lines = @stream.writes.join.lines

    assert_equal "lost #{2_500 - lines.size + 1} lines of the log: it is read too slowly\n", lines.last
    @stream.hook = nil
    @buffer.write("again\n")

    assert_equal "again\n", @stream.writes.last
  end

  def test_a_child_process_writes_its_own_lines_only_while_the_stream_is_not_read
    reader, writer = IO.pipe
    @stream.hook = -> { sleep }
    @buffer.write("parent's\n")
    pid = fork do
      @stream.hook = -> { writer.write("child's\n") }
      @buffer.write("child's\n")
      writer.write(@stream.writes.join)
      exit!(0)
    end
    writer.close
    Process.wait(pid)

    assert_equal "child's\nchild's\n", reader.read
  ensure
    reader.close
  end

  def test_text_in_any_encoding_is_written_as_it_is
    @stream.hook = -> { raise Errno::ENOSPC }
    @buffer.write("caf\xE9\n".b)
    @stream.hook = nil
    @buffer.write("\xFFé\n")

    assert_equal "\n\xFFé\nlost 1 line of the log: No space left on device\n".b, @stream.writes.join.b
  end
end
