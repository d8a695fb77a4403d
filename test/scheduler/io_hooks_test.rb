# frozen_string_literal: true

require "test_helper"
require "support/scheduled"
require "socket"
require "tempfile"

# R1, C1, C4-C6: existing blocking code runs unchanged; bytes arrive as they were sent; no stale event wakes a fiber.
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

  # The kernel has no write to a FIFO that does not block, as it has to a pipe.
  def test_a_fifo_that_is_full_lets_the_fiber_wait_that_reads_it
    received = scheduled do
      Dir.mktmpdir do |folder|
        File.mkfifo("#{folder}/fifo")
        reader = File.open("#{folder}/fifo", "r+b")
        Fiber.schedule { File.binwrite("#{folder}/fifo", BYTES) }
        reader.read(BYTES.bytesize)
      end
    end

    assert_equal BYTES, received
  end

  def test_cached_pipe_state_does_not_affect_a_reused_descriptor
    scheduled do
      reader, writer = IO.pipe
      Fiber.schedule { writer.write(BYTES) }
      reader.read(BYTES.bytesize)

      Tempfile.create("after a pipe") do |file|
        [reader, writer].each { |io| io.reopen(file.path, "r+b") } # the numbers stay
        writer.syswrite(BYTES)

        assert_equal BYTES, reader.read
      end

      UNIXSocket.pair.zip([writer, reader]) do |socket, io|
        io.reopen(socket)
        socket.close
      end
      Fiber.schedule { writer.write(BYTES) }

      assert_equal BYTES, reader.read(BYTES.bytesize)
      reader.close
      assert_raises(Errno::EPIPE) { writer.syswrite("x") }
      writer.close
    end
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

  # The buffer is memory that can't be written to: it maps a file that has become shorter. Where the kernel reads the
  # file without a thread, and where the hook has to read it in place.
  def test_an_error_of_a_file_that_is_not_in_memory_keeps_its_number
    scheduled do |scheduler|
      [Tempfile.create("heddle"), Tempfile.create("heddle")].then do |file, mapped|
        [file, mapped].each { |one| one.write("x" * 8192) && one.fdatasync }
        buffer = IO::Buffer.map(mapped, 8192)
        mapped.truncate(0)
        file.advise(:dontneed)

        assert_equal(-Errno::EFAULT::Errno, scheduler.io_pread(file, buffer, 0, 4096, 0))
      ensure
        buffer&.free
        [file, mapped].each { |one| one.close && File.unlink(one.path) }
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

  def test_connect_timeout_and_rejection
    scheduled do
      taken = TCPServer.new("127.0.0.1", 0)
      port = taken.local_address.ip_port
      taken.close

      assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }
      assert_raises(Errno::ECONNREFUSED) { Socket.tcp("127.0.0.1", port, connect_timeout: 1) }
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
