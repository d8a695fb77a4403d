# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "socket"

# Waiting for readiness: io_wait, IO.select, IO#timeout.
class IOWaitTest < Minitest::Test
  include Scheduled

  BYTES = Random.new(1).bytes(1 << 20).freeze

  def test_io_timeout_is_obeyed_in_each_kind_of_wait
    scheduled do
      reader, writer = IO.pipe
      reader.timeout = 0.01
      writer.timeout = 0.01

      assert_raises(IO::TimeoutError) { reader.read(1) }
      assert_raises(IO::TimeoutError) { reader.gets }
      assert_raises(IO::TimeoutError) { writer.write(BYTES) }
      server = TCPServer.new("127.0.0.1", 0)
      server.timeout = 0.01

      assert_raises(IO::TimeoutError) { server.accept }
    end
  end

  def test_io_wait_returns_false_at_the_limit_and_the_ready_mask_before
    scheduled do |scheduler|
      reader, writer = IO.pipe

      assert_same false, scheduler.io_wait(reader, IO::READABLE, 0.001)
      writer << "x"

      assert_equal IO::READABLE, scheduler.io_wait(reader, IO::READABLE, LIMIT)
      assert_equal IO::WRITABLE, scheduler.io_wait(writer, IO::WRITABLE, LIMIT)
      assert_same reader, reader.wait_readable(LIMIT)
      reader.getc

      assert_nil reader.wait_readable(0.001)
    end
  end

  def test_a_file_in_the_third_list_of_select_is_never_ready
    scheduled do
      reader, writer = IO.pipe
      files = [File.open(__FILE__), File.open(__dir__), File.open(File::NULL)]

      assert_nil IO.select([reader], nil, files, 0.001)
      Fiber.schedule { writer << "x" }

      assert_equal [[reader], [], []], IO.select([reader], nil, files, LIMIT)
      files.each { |file| assert_nil file.wait(IO::PRIORITY, 0.001) }
    end
  end

  def test_two_fibers_wait_for_one_descriptor_in_both_directions
    scheduled do
      left, right = UNIXSocket.pair
      written = false
      Fiber.schedule do
        left.write(BYTES)
        written = true
      end
      heard = nil
      Fiber.schedule { heard = left.readpartial(10) }

      refute written
      right.write("answer")
      until_true { heard }

      assert_equal BYTES, right.read(BYTES.bytesize)
      until_true { written }

      assert_equal "answer", heard
    end
  end

  def test_select_returns_the_ready_ios_of_each_list
    scheduled do
      reader, writer = IO.pipe
      quiet, silent = IO.pipe # a writer that is garbage makes its reader ready

      assert_nil IO.select([reader, quiet], nil, nil, 0)
      assert_nil IO.select([reader, quiet], nil, nil, 0.001)
      assert_equal [[], [writer], []], IO.select([reader], [writer], nil, LIMIT)
      Fiber.schedule do
        sleep 0.001
        writer << "x"
      end

      assert_equal [[reader], [], []], IO.select([quiet, reader], nil, nil, LIMIT)
      assert_raises(IOError) { IO.select([quiet.tap(&:close)]) }
      silent.close
    end
  end

  # As select(2), and so Ruby's threads, see it: an end of input or an error is nothing exceptional.
  def test_a_hang_up_is_readable_and_not_exceptional
    scheduled do |scheduler|
      left, right = UNIXSocket.pair
      chosen = nil
      Fiber.schedule { chosen = IO.select([left], nil, [left], LIMIT) }
      right.write("last words")
      right.close
      until_true { chosen }

      assert_equal [[left], [], []], chosen
      switches = scheduler.statistics[:switches]

      assert_nil IO.select(nil, nil, [left], 0.02)
      assert_operator scheduler.statistics[:switches] - switches, :<, 10
      assert_equal [[left], [left], []], IO.select([left], [left], [left], LIMIT)
      left.close
    end
  end

  def test_a_pipe_without_readers_is_writable_and_not_exceptional
    scheduled do
      reader, writer = IO.pipe
      reader.close

      assert_equal [[], [writer], []], IO.select(nil, [writer], [writer], LIMIT)
      assert_nil IO.select(nil, nil, [writer], 0.001)
      writer.close
    end
  end

  def test_a_file_has_nothing_exceptional
    scheduled do
      reader, writer = IO.pipe
      [__FILE__, File::NULL].each do |path|
        File.open(path) do |file|
          assert_nil IO.select(nil, nil, [file], 0.001)
          assert_equal [[file], [], []], IO.select([file], nil, [file], LIMIT)
          Fiber.schedule { writer << "x" }

          assert_equal [[reader], [], []], IO.select([reader], nil, [file, reader], LIMIT)
          assert_equal "x", reader.read(1)
        end
      end
      [reader, writer].each(&:close)
    end
  end

  def test_urgent_data_is_exceptional
    scheduled do
      server = TCPServer.new("127.0.0.1", 0)
      client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      peer = server.accept
      chosen = nil
      Fiber.schedule { chosen = IO.select(nil, nil, [peer], LIMIT) }
      client.send("!", Socket::MSG_OOB)
      until_true { chosen }

      assert_equal [[], [], [peer]], chosen
      [server, client, peer].each(&:close)
    end
  end

  def test_select_looks_at_the_writing_end_of_a_pipe_in_both_directions
    ready = scheduled do
      IO.popen("cat", "r+") do |both|
        [IO.select(nil, [both], nil, LIMIT), both].then { |lists, io| lists && lists[1] == [io] }
      end
    end
    assert ready
  end

  def test_a_wake_up_meant_for_another_wait_does_not_end_one_for_io
    scheduled do |scheduler|
      reader, writer = IO.pipe
      silent, silent_writer = IO.pipe
      results = []
      began = now
      ended = nil
      waiting = [Fiber.schedule { results << reader.read(1) },
                 Fiber.schedule { results << silent.wait_readable(0.02).tap { ended = now } }]
      waiting.each { |fiber| scheduler.unblock(nil, fiber) }
      until_true { results.any? || ended }
      assert_equal [nil], results
      assert_operator ended - began, :>=, 0.02
      writer << "a"
      until_true { results.size == 2 }
      assert_equal [nil, "a"], results
      silent_writer.close
    end
  end

  # Where others are ready, who finds nothing lets them have a turn before the selector is told of the wait: but not
  # again and again.
  def test_a_fiber_that_waits_for_bytes_is_not_resumed_without_any
    scheduled do |scheduler|
      readers, writers = Array.new(10) { UNIXSocket.pair }.transpose
      busy = 2.times.map { Fiber.schedule { 300.times { scheduler.yield } } }
      readers.each { |reader| Fiber.schedule { reader.readpartial(1) } }
      100.times { scheduler.yield }
      before = scheduler.statistics[:switches]
      10.times { scheduler.yield }

      assert_operator scheduler.statistics[:switches] - before, :<=, 3 * 11
      writers.each { |writer| writer.write("x") }
      until_true { busy.none?(&:alive?) }
      [*readers, *writers].each(&:close)
    end
  end

  def test_a_fiber_interrupted_before_its_read_does_not_read
    scheduled do |scheduler|
      reader, writer = UNIXSocket.pair
      raised = nil
      Fiber.schedule { 3.times { scheduler.yield } }
      waiting = Fiber.schedule { raised = assert_raises(IOError) { reader.readpartial(1) } }
      scheduler.interrupt(waiting, IOError.new("on purpose"))
      writer.write("x")
      until_true { raised }

      assert_equal ["on purpose", "x"], [raised.message, reader.readpartial(1)]
      [reader, writer].each(&:close)
    end
  end

  def test_select_knows_what_ruby_has_buffered
    scheduled do
      reader, writer = IO.pipe
      writer << "one\ntwo\n"
      reader.gets

      assert_equal [[reader], [], []], IO.select([reader], nil, nil, LIMIT)
    end
  end

  def test_a_wait_with_a_zero_timeout_sees_ready_ios
    scheduled do
      reader, writer = UNIXSocket.pair
      seen = Array.new(3) { reader.wait_readable(0) }
      writer << "x"
      others = Array.new(3) { Fiber.schedule { 20.times { Fiber.scheduler.yield } } }
      seen.concat(Array.new(20) { reader.wait_readable(0) })

      assert_equal ([nil] * 3) + ([reader] * 20), seen
      until_true { others.none?(&:alive?) }
      [reader, writer].each(&:close)
    end
  end

  # D3: more descriptors than select(2)'s FD_SETSIZE.
  def test_more_descriptors_than_select_was_made_for
    limit = Process.getrlimit(:NOFILE).first
    skip "ulimit -n is #{limit}" if limit < 2_500
    scheduled do
      pairs = Array.new(1_100) { UNIXSocket.pair }
      heard = 0
      lefts, rights = pairs.transpose
      lefts.each do |left|
        Fiber.schedule do
          left.read(1)
          heard += 1
        end
      end
      rights.each { |right| right << "x" }
      until_true { heard == pairs.size }
      pairs.flatten.each(&:close)
    end
  end

  def test_select_with_an_infinite_limit_waits_for_the_io
    scheduled do
      reader, writer = IO.pipe
      Fiber.schedule { writer << "a" }

      assert_equal [[reader], [], []], IO.select([reader], nil, nil, Float::INFINITY)
    ensure
      [reader, writer].each { |io| io&.close }
    end
  end
end
