# frozen_string_literal: true

# test: each selector
# test: sanitize
# test: smoke

require_relative "support/sockets_case"

# Who waits for a connection, and who takes it over.
module ConnectionTests
  # More than any socket buffer takes.
  LARGE = 20_000_000

  def test_a_reset_raises_in_reader_and_writer
    errors = {}
    handler = lambda do |connection|
      connection.readpartial(1)
      reader = Fiber.schedule { errors[:read] = error_of(SystemCallError) { connection.readpartial(1) } }
      errors[:write] = error_of(SystemCallError) { connection.write("x" * LARGE) }
      until_true { !reader.alive? }
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      until_true { client.wait_readable(0) }
      reset(client)
      until_true { errors.size == 2 && server.sockets.connections == 0 }
    end
    assert_instance_of Errno::ECONNRESET, errors[:read]
    assert_includes [Errno::ECONNRESET, Errno::EPIPE], errors[:write].class
  end

  def test_one_fiber_reads_while_another_writes
    received = +""
    handler = lambda do |connection|
      connection.readpartial(1)
      reader = Fiber.schedule do
        while (input = connection.readpartial(65_536))
          received << input
        end
      end
      connection.write("out" * 3_000_000)
      until_true { !reader.alive? }
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      writer = Fiber.schedule do
        client.write("in" * 3_000_000)
        client.close_write
      end

      assert_equal 9_000_000, client.read(9_000_000).bytesize
      until_true { !writer.alive? && server.sockets.connections == 0 }
    end
    assert_equal 6_000_000, received.bytesize
  end

  def test_two_fibers_can_neither_read_nor_write_at_once
    errors = []
    large = "x" * LARGE # making it takes longer than a slice
    handler = lambda do |connection|
      connection.readpartial(1)
      waiting = [Fiber.schedule { error_of(IOError) { connection.readpartial(1) } },
                 Fiber.schedule { error_of(IOError) { connection.write(large) } }]
      errors << error_of(IOError) { connection.readpartial(1) } << error_of(IOError) { connection.write("y") }
      connection.close
      until_true { waiting.none?(&:alive?) }
    end
    serve(handler) do |server|
      server.connect.write("x")
      until_true { errors.size == 2 }
    end
    assert_equal ["another fiber is reading this connection already",
                  "another fiber is writing to this connection already"], errors.map(&:message)
  end

  def test_closing_raises_in_waiting_fibers
    errors = []
    large = "x" * LARGE
    handler = lambda do |connection|
      connection.readpartial(1)
      fibers = [Fiber.schedule { errors << error_of(IOError) { connection.readpartial(1) } },
                Fiber.schedule { errors << error_of(IOError) { connection.write(large) } }]
      2.times { connection.close }
      until_true { fibers.none?(&:alive?) }
    end
    serve(handler) do |server|
      server.connect.write("x")
      until_true { errors.size == 2 }

      assert_equal 0, server.sockets.connections
    end
    errors.each { |error| assert_match(/closed while/, error.message) }
  end

  def test_a_cancelled_runner_ends_and_its_connection_with_it
    serving = nil
    handler = lambda do |connection|
      serving = Fiber.current
      connection.write("x" * (connection.readpartial(10) == "large" ? LARGE : 1))
    end
    serve(handler) do |server|
      client = server.connect
      client.write("large")
      until_true { serving && client.wait_readable(0) }
      server.scheduler.interrupt(serving, Heddle::Cancelled.new)
      until_true { server.sockets.connections == 0 }
      other = server.connect
      other.write("x")

      assert_equal "x", other.readpartial(1)
    end
  end

  def test_a_detached_connection_is_a_socket_with_what_was_not_read
    taken = nil
    handler = lambda do |connection|
      input = connection.readpartial(100)
      connection.unread(input[2..])
      taken = connection.detach
    end
    serve(handler) do |server|
      client = server.connect
      client.write("abcdef")
      until_true { taken }

      assert_equal 0, server.sockets.connections
      assert_instance_of TCPSocket, taken
      assert_predicate taken.getsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY), :bool
      assert_equal "cdef", taken.readpartial(100)
      client.write("more")

      assert_equal "more", taken.readpartial(100)
      taken.write("answer")

      assert_equal "answer", client.readpartial(100)
      taken.close
    end
  end

  def test_a_unix_connection
    Dir.mktmpdir do |folder|
      taken = nil
      seen = []
      handler = lambda do |connection|
        seen << connection.remote_address << connection.remote_port << connection.local_address << connection.local_port
        connection.write(connection.readpartial(10))
        taken = connection.detach
      end
      serve(handler, listener: UNIXServer.new(File.join(folder, "socket"))) do |server|
        client = server.connect
        client.write("x")

        assert_equal "x", client.readpartial(1)
        until_true { taken }
        assert_instance_of UNIXSocket, taken
        taken.close
      end
      assert_equal ["unix", nil, "unix", nil], seen
    end
  end
end
Heddle::TestHelpers.with_each_event_set(ConnectionTests)
