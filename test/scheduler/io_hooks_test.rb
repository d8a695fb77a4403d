# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "socket"
require "tempfile"

# R1, C1, C4-C6: existing blocking code runs unchanged; bytes arrive as they were sent; nothing stale wakes anybody.
class IOHooksTest < Minitest::Test
  include Scheduled

  BYTES = Random.new(1).bytes(1 << 20).freeze # every byte value, NUL among them

  def test_a_pipe_smaller_than_what_is_written_is_read_to_its_end
    received = scheduled do
      reader, writer = IO.pipe
      Fiber.schedule do
        writer.write(BYTES)
        writer.close
      end
      reader.binmode.read
    end

    assert_equal BYTES, received
  end

  def test_every_way_of_reading_waits
    scheduled do
      reader, writer = IO.pipe
      results = []
      done = Fiber.schedule do
        results << reader.gets << reader.readpartial(3) << reader.sysread(2) << reader.read(4) << reader.getc
        results << reader.readline(chomp: true) << reader.read
      end
      %W[line\n abc de fghi j kl\n rest].each do |part|
        writer.write(part)
        sleep 0.001
      end
      writer.close
      until_true { !done.alive? }

      assert_equal %W[line\n abc de fghi j kl rest], results
    end
  end

  def test_a_tcp_server_and_its_clients_in_one_thread
    scheduled do
      server = TCPServer.new("127.0.0.1", 0)
      Fiber.schedule do
        3.times do
          client = server.accept
          Fiber.schedule do
            client.write(client.gets.upcase)
            client.close
          end
        end
      end
      answers = []
      3.times do |i|
        Fiber.schedule do
          socket = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
          socket.puts("client #{i}")
          answers << socket.read
          socket.close
        end
      end
      until_true { answers.size == 3 }

      assert_equal Array.new(3) { |i| "CLIENT #{i}\n" }, answers.sort
    end
  end

  def test_udp
    scheduled do
      server = UDPSocket.new
      server.bind("127.0.0.1", 0)
      Fiber.schedule do
        message, from = server.recvfrom(100)
        server.send(message.reverse, 0, from[3], from[1])
      end
      client = UDPSocket.new
      client.connect("127.0.0.1", server.local_address.ip_port)
      client.send("datagram", 0)

      assert_equal "margatad", client.recv(100)
    end
  end

  def test_unix_sockets_and_copy_stream
    received = scheduled do
      left, right = UNIXSocket.pair
      Fiber.schedule do
        IO.copy_stream(StringIO.new(BYTES), left)
        left.close
      end
      right.read
    end

    assert_equal BYTES, received
  end

  def test_files_are_read_written_and_read_at_a_position
    scheduled do
      Tempfile.create("heddle") do |file|
        file.binmode
        file.write(BYTES)
        file.flush
        file.rewind

        assert_equal BYTES, file.read
        assert_equal BYTES.byteslice(1000, 5000), file.pread(5000, 1000)
        file.pwrite("\0\1\2", 10)

        assert_equal "\0\1\2".b, file.pread(3, 10)
        assert_raises(EOFError) { file.pread(1, BYTES.bytesize) }
      end
    end
  end

  # A file whose pages are not in memory goes through the ring, where there is one: its buffer is the kernel's then.
  def test_a_file_that_is_not_in_memory
    scheduled do
      Tempfile.create("heddle") do |file|
        file.binmode
        file.write(BYTES)
        file.fdatasync
        file.advise(:dontneed)
        file.rewind

        assert_equal BYTES, file.read
      end
    end
  end

  def test_a_cancelled_file_read_leaves_its_memory_alone
    scheduled do
      Tempfile.create("heddle") do |file|
        file.binmode
        file.write(BYTES * 8)
        file.fdatasync
        20.times do
          file.advise(:dontneed)
          file.rewind
          fiber = Fiber.schedule do
            file.read
          rescue IndexError
            nil
          end
          fiber.raise(IndexError) if fiber.alive?
        end
      end
    end
    GC.start
  end

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

      assert_equal IO::READABLE, scheduler.io_wait(reader, IO::READABLE, 1)
      assert_equal IO::WRITABLE, scheduler.io_wait(writer, IO::WRITABLE, 1)
      assert_same reader, reader.wait_readable(1)
      assert_nil IO.pipe.first.wait_readable(0.001)
    end
  end

  def test_connect_timeout_and_refusal
    scheduled do
      taken = TCPServer.new("127.0.0.1", 0)
      port = taken.local_address.ip_port
      taken.close

      assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }
      assert_raises(Errno::ECONNREFUSED) { Socket.tcp("127.0.0.1", port, connect_timeout: 1) }
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

  def test_select_tells_what_is_ready_of_each_list
    scheduled do
      reader, writer = IO.pipe
      quiet, = IO.pipe

      assert_nil IO.select([reader, quiet], nil, nil, 0)
      assert_nil IO.select([reader, quiet], nil, nil, 0.001)
      assert_equal [[], [writer], []], IO.select([reader], [writer], nil, 1)
      Fiber.schedule do
        sleep 0.001
        writer << "x"
      end

      assert_equal [[reader], [], []], IO.select([quiet, reader], nil, nil, 10)
      assert_raises(IOError) { IO.select([quiet.tap(&:close)]) }
    end
  end

  def test_select_looks_at_the_writing_end_of_a_pipe_in_both_directions
    ready = scheduled do
      IO.popen("cat", "r+") do |both|
        [IO.select(nil, [both], nil, 5), both].then { |lists, io| lists && lists[1] == [io] }
      end
    end
    assert ready
  end

  def test_a_wake_up_meant_for_another_wait_does_not_end_one_for_io
    scheduled do |scheduler|
      reader, writer = IO.pipe
      silent, silent_writer = IO.pipe
      results = []
      waiting = [Fiber.schedule { results << reader.read(1) }, Fiber.schedule { results << silent.wait_readable(0.02) }]
      waiting.each { |fiber| scheduler.unblock(nil, fiber) }
      3.times { scheduler.yield }
      assert_empty results
      until_true { results == [nil] }
      writer << "a"
      until_true { results.size == 2 }
      assert_equal [nil, "a"], results
      silent_writer.close
    end
  end

  def test_a_position_or_a_descriptor_below_zero_is_refused
    number = Object.new
    def number.fileno = -77
    scheduled do |scheduler|
      File.open(__FILE__) { |file| assert_raises(Errno::EINVAL) { file.pread(5, -1) } }
      assert_raises(Errno::EBADF) { scheduler.io_wait(number, IO::READABLE, 0.01) }
      assert_equal(-Errno::EBADF::Errno, scheduler.io_read(number, IO::Buffer.new(8), 0, 0))
    end
  end

  def test_select_knows_what_ruby_has_buffered
    scheduled do
      reader, writer = IO.pipe
      writer << "one\ntwo\n"
      reader.gets

      assert_equal [[reader], [], []], IO.select([reader], nil, nil, 10)
    end
  end

  # fiber-scheduler trap 2: before Ruby 4.0 nothing tells the scheduler of a close.
  def test_closing_an_io_fails_who_waits_for_it
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

  def test_a_close_by_another_thread_fails_who_waits
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
      reader, writer = IO.pipe
      reader = [reader, writer].find { |io| io.fileno == number } || reader
      skip "the kernel gave another number" unless reader.fileno == number
      Fiber.schedule { writer << "x" }

      assert_same reader, reader.wait_readable(10)
      until_true { outcome }

      assert_equal :failed, outcome
    end
  end

  # Trap 13: a pending poll must not keep the socket open for its peer.
  def test_the_peer_sees_the_end_of_a_socket_that_somebody_waits_for
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

  # C5: waiting costs no memory that stays.
  def test_a_hundred_thousand_transfers_leave_no_objects_behind
    scheduled do
      left, right = UNIXSocket.pair
      Fiber.schedule do
        while (byte = left.readpartial(1))
          left.write(byte)
        end
      rescue EOFError
        nil
      end
      ping = -> { right.write("x") && right.readpartial(1) }
      100.times { ping.call }
      GC.start
      before = GC.stat(:heap_live_slots)
      20_000.times { ping.call }
      GC.start

      assert_in_delta before, GC.stat(:heap_live_slots), 2_000
      right.close
    end
  end
end
