# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# Reading and writing: whole, in order, and never silent about a peer that is gone.
module ConnectionTests
  # More than any socket buffer takes.
  LARGE = 20_000_000

  def test_reads_what_is_there
    pieces = []
    handler = lambda do |connection|
      pieces << connection.read_partial(4) << connection.read_partial(0) << connection.read_partial(100)
      pieces << connection.read_partial(100)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("abcdefg")
      until_true { pieces.size == 3 }
      client.close
      until_true { pieces.size == 4 }
    end
    assert_equal ["abcd", "", "efg", nil], pieces
    assert_equal [Encoding::BINARY], pieces.compact.map(&:encoding).uniq
  end

  def test_a_wait_for_input_ends_in_time
    errors = []
    handler = lambda do |connection|
      connection.read_partial(1)
      started = now
      errors << error_of(IO::TimeoutError) { connection.read_partial(1, 0.05) } << (now - started)
      errors << error_of(IO::TimeoutError) { connection.read_partial(1, 0) }
      connection.write("late")
      errors << connection.read_partial(10, 5)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")

      assert_equal "late", client.readpartial(10)
      client.write("y")
      until_true { errors.size == 4 }
    end
    assert_instance_of IO::TimeoutError, errors[0]
    assert_operator errors[1], :>=, 0.05
    assert_instance_of IO::TimeoutError, errors[2]
    assert_equal "y", errors[3]
  end

  def test_a_negative_length_is_a_mistake
    error = nil
    serve(->(connection) { error = error_of(ArgumentError) { connection.read_partial(-1) } }) do |server|
      server.connect.write("x")
      until_true { error }
    end
    assert_match(/negative/, error.message)
  end

  def test_what_is_pushed_back_comes_first
    read = []
    handler = lambda do |connection|
      connection.unread("")
      first = connection.read_partial(3)
      connection.unread(first[1..])
      connection.unread("A")
      connection.unread("--")
      read << connection.read_partial(4) << connection.read_partial(100) << connection.read_partial(100)
      read << connection.read_partial(100)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("abcdef")
      client.close
      until_true { read.size == 4 }
    end
    assert_equal ["--Ab", "c", "def", nil], read
  end

  def test_writes_strings_and_lists_of_strings
    written = []
    handler = lambda do |connection|
      connection.read_partial(1)
      written << connection.write("a") << connection.write(["b", "", "c" * 3]) << connection.write([])
      written << connection.write("") << connection.write(Array.new(3000) { |i| "#{i} " })
    end
    many = Array.new(3000) { |i| "#{i} " }.join
    serve(handler) do |server|
      client = server.connect
      client.write("x")

      assert_equal "abccc#{many}", client.read
    end
    assert_equal [1, 4, 0, 0, many.bytesize], written
  end

  def test_writes_nothing_but_strings
    errors = []
    handler = lambda do |connection|
      errors << error_of(TypeError) { connection.write(["fine", :symbol]) } << error_of(TypeError) do
        connection.write(1)
      end
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      assert_raises(Errno::ECONNRESET) { client.read } if client.wait_readable(5)
    end
    assert_equal 2, errors.compact.size
  end

  def test_a_slow_peer_gets_everything
    body = Random.new(1).bytes(LARGE)
    serve(writing(body.dup)) do |server|
      client = server.connect
      client.write("x")
      got = +""
      while (piece = client.read(1_000_000))
        got << piece
        sleep 0.001
      end

      assert_equal body.hash, got.hash
    end
  end

  def test_a_list_with_a_slow_peer
    list = Array.new(5000) { |i| i.to_s * (i % 2000) }
    expected = list.join
    serve(writing(list)) do |server|
      client = server.connect
      client.write("x")
      sleep 0.01

      assert_equal expected.hash, client.read.hash
    end
  end

  def test_what_is_being_written_may_change_without_being_written
    list = [+"a" * 10, +"b" * LARGE, +"c" * LARGE, +"d" * 10, +"e"]
    expected = list.join
    serve(writing(list)) do |server|
      client = server.connect
      client.write("x")
      until_true { client.wait_readable(0) }
      list.each(&:clear)
      list.clear
      GC.start

      assert_equal expected.hash, client.read.hash
    end
  end

  def test_no_progress_in_time_is_an_error
    errors = []
    handler = lambda do |connection|
      started = now
      errors << error_of(IO::TimeoutError) { connection.write("x" * LARGE, 0.05) } << (now - started)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      until_true { errors.size == 2 }
    end
    assert_match(/took nothing/, errors[0].message)
    assert_operator errors[1], :>=, 0.05
  end

  def test_slow_progress_is_progress
    written = nil
    handler = lambda do |connection|
      connection.read_partial(1)
      written = connection.write("x" * LARGE, 0.5)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      started = now
      while (piece = client.read(1_200_000))
        sleep 0.05 if piece.bytesize == 1_200_000 && now - started < 0.7
      end
      until_true { written }

      assert_operator now - started, :>, 0.6
    end
    assert_equal LARGE, written
  end

  def test_a_reset_fails_who_reads_and_who_writes
    errors = {}
    handler = lambda do |connection|
      connection.read_partial(1)
      reader = Fiber.schedule { errors[:read] = error_of(SystemCallError) { connection.read_partial(1) } }
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

  def test_a_reset_never_looks_like_the_end_of_input
    results = []
    handler = lambda do |connection|
      connection.read_partial(1)
      connection.write("go")
      # The kernel tells of a reset once: here it tells who writes.
      results << error_of(SystemCallError) { loop { connection.write("x" * 100_000) } }
      3.times { results << error_of(SystemCallError) { connection.read_partial(1) } }
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      client.readpartial(2)
      reset(client)
      until_true { results.size == 4 }
    end
    assert_equal 4, results.compact.size
    assert_includes [Errno::ECONNRESET, Errno::EPIPE], results[1].class
  end

  def test_a_peer_that_has_said_all_still_gets_its_answer
    input = []
    handler = lambda do |connection|
      input << connection.read_partial(10) << connection.read_partial(10) << connection.read_partial(10)
      connection.write("answer " * 1_000_000)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      client.close_write

      assert_equal 7_000_000, client.read.bytesize
    end
    assert_equal ["x", nil, nil], input
  end

  def test_writing_to_a_peer_that_is_gone_raises_and_sends_no_signal
    error = nil
    handler = lambda do |connection|
      connection.read_partial(10)
      connection.read_partial(10)
      error = error_of(SystemCallError) { loop { connection.write("x" * 1000) } }
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      client.close
      until_true { error }
    end
    assert_includes [Errno::ECONNRESET, Errno::EPIPE], error.class
  end

  def test_the_output_can_be_ended_alone
    read = nil
    handler = lambda do |connection|
      connection.read_partial(10)
      connection.write("all")
      connection.shutdown_write
      read = connection.read_partial(10)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")

      assert_equal "all", client.read
      client.write("more")
      until_true { read }
    end
    assert_equal "more", read
  end

  def test_one_reads_while_another_writes
    received = +""
    handler = lambda do |connection|
      connection.read_partial(1)
      reader = Fiber.schedule do
        while (input = connection.read_partial(65_536))
          received << input
        end
      end
      connection.write("out" * 3_000_000)
      connection.shutdown_write
      until_true { !reader.alive? }
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")
      writer = Fiber.schedule do
        client.write("in" * 3_000_000)
        client.close_write
      end

      assert_equal 9_000_000, client.read.bytesize
      until_true { !writer.alive? && server.sockets.connections == 0 }
    end
    assert_equal 6_000_000, received.bytesize
  end

  def test_two_can_neither_read_nor_write_at_once
    errors = []
    handler = lambda do |connection|
      connection.read_partial(1)
      waiting = [Fiber.schedule { error_of(IOError) { connection.read_partial(1) } },
                 Fiber.schedule { error_of(IOError) { connection.write("x" * LARGE) } }]
      errors << error_of(IOError) { connection.read_partial(1) } << error_of(IOError) { connection.write("y") }
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

  def test_closing_fails_who_waits
    errors = []
    handler = lambda do |connection|
      connection.read_partial(1)
      fibers = [Fiber.schedule { errors << error_of(IOError) { connection.read_partial(1) } },
                Fiber.schedule { errors << error_of(IOError) { connection.write("x" * LARGE) } }]
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

  def test_an_interrupted_wait_leaves_a_connection_that_works
    seen = []
    handler = lambda do |connection|
      connection.read_partial(1)
      seen << error_of(Timeout::Error) { Timeout.timeout(0.02) { connection.read_partial(1) } }.class
      connection.write("go on")
      seen << connection.read_partial(10)
      connection.idle! if seen.size == 2
    end
    serve(handler) do |server|
      client = server.connect
      client.write("x")

      assert_equal "go on", client.readpartial(10)
      client.write("yes")
      until_true { server.sockets.idle == 1 && seen.size == 2 }
    end
    assert_equal [Timeout::Error, "yes"], seen
  end

  def test_a_cancelled_runner_ends_and_its_connection_with_it
    serving = nil
    handler = lambda do |connection|
      serving = Fiber.current
      connection.write("x" * (connection.read_partial(10) == "large" ? LARGE : 1))
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

  def test_a_file_is_sent_without_its_position
    body = Random.new(2).bytes(3_000_000)
    with_file(body) do |file|
      sent = nil
      handler = lambda do |connection|
        connection.read_partial(1)
        connection.write("head:")
        sent = connection.sendfile(file, 1000, 2_000_000)
      end
      serve(handler) do |server|
        client = server.connect
        client.write("x")
        sleep 0.01

        assert_equal "head:#{body.byteslice(1000, 2_000_000)}".hash, client.read.hash
      end

      assert_equal [2_000_000, 0], [sent, file.pos]
    end
  end

  def test_a_file_that_is_too_short_is_an_error
    with_file("short") do |file|
      errors = []
      handler = lambda do |connection|
        connection.read_partial(1)
        errors << error_of(EOFError) { connection.sendfile(file, 1, 10) }
        errors << error_of(ArgumentError) { connection.sendfile(file, -1, 10) }
        IO.pipe { |reader, _| errors << error_of(ArgumentError) { connection.sendfile(reader, 0, 1) } }
        connection.sendfile(file, 0, 0)
      end
      serve(handler) do |server|
        client = server.connect
        client.write("x")

        assert_equal "hort", client.read
      end
      assert_equal 3, errors.compact.size
      assert_match(/6 bytes before/, errors[0].message)
    end
  end

  def test_a_file_for_a_peer_that_takes_nothing
    with_file("x" * LARGE) do |file|
      error = nil
      handler = ->(connection) { error = error_of(IO::TimeoutError) { connection.sendfile(file, 0, LARGE, 0.05) } }
      serve(handler) do |server|
        server.connect.write("x")
        until_true { error }
      end
      assert_match(/took nothing/, error.message)
    end
  end

  def test_a_detached_connection_is_a_socket_with_what_was_not_read
    taken = nil
    handler = lambda do |connection|
      input = connection.read_partial(100)
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
        connection.write(connection.read_partial(10))
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

  def test_a_unix_peer_that_goes_with_its_last_words
    Dir.mktmpdir do |folder|
      heard = []
      handler = ->(connection) { heard << connection.read_partial(10) << connection.read_partial(10) }
      serve(handler, listener: UNIXServer.new(File.join(folder, "socket"))) do |server|
        client = server.connect
        client.write("bye")
        client.close
        server.connect.close
        until_true { heard.size == 2 && server.sockets.connections == 0 && server.sockets.accepted == 2 }
      end
      assert_equal ["bye", nil], heard
    end
  end

  def test_addresses
    ["127.0.0.1", "0.0.0.0", "::1", "::"].each do |host|
      seen = nil
      handler = lambda do |connection|
        seen = [connection.remote_address, connection.remote_port, connection.local_address, connection.local_port]
      end
      serve(handler, listener: TCPServer.new(host, 0)) do |server|
        client = TCPSocket.new(host.include?(":") ? "::1" : "127.0.0.1", server.port)
        client.write("x")
        until_true { seen }
        address = client.local_address

        assert_equal [address.ip_address, address.ip_port, address.ip_address, server.port], seen
        assert_predicate seen[0], :frozen?
      end
    rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
      assert_includes host, ":", "only IPv6 may be missing"
    end
  end

  private

  def writing(what)
    lambda do |connection|
      connection.read_partial(1)
      connection.write(what)
    end
  end

  def with_file(content, &block)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "file")
      File.binwrite(path, content)
      File.open(path, "rb", &block)
    end
  end
end
Heddle::TestHelpers.with_each_socket_set(ConnectionTests)
