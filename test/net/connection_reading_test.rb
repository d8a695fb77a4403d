# frozen_string_literal: true

# test: each selector
# test: sanitize

require_relative "support/sockets_case"

# Input arrives complete and in order, and ends only where the client ended it.
module ConnectionReadingTests
  def test_reads_what_is_there
    pieces = []
    handler = lambda do |connection|
      pieces << connection.readpartial(4) << connection.readpartial(0) << connection.readpartial(100)
      pieces << connection.readpartial(100)
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
      connection.readpartial(1)
      started = now
      errors << error_of(IO::TimeoutError) { connection.readpartial(1, timeout: 0.05) } << (now - started)
      errors << error_of(IO::TimeoutError) { connection.readpartial(1, timeout: 0) }
      connection.write("late")
      errors << connection.readpartial(10, timeout: Scheduled::LIMIT)
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
    serve(->(connection) { error = error_of(ArgumentError) { connection.readpartial(-1) } }) do |server|
      server.connect.write("x")
      until_true { error }
    end
    assert_match(/negative/, error.message)
  end

  def test_pushed_back_bytes_are_read_first
    read = []
    handler = lambda do |connection|
      connection.unread("")
      first = connection.readpartial(3)
      connection.unread(first[1..])
      connection.unread("A")
      connection.unread("--")
      read << connection.readpartial(4) << connection.readpartial(100) << connection.readpartial(100)
      read << connection.readpartial(100)
    end
    serve(handler) do |server|
      client = server.connect
      client.write("abcdef")
      client.close
      until_true { read.size == 4 }
    end
    assert_equal ["--Ab", "c", "def", nil], read
  end

  def test_a_reset_never_looks_like_the_end_of_input
    results = []
    handler = lambda do |connection|
      connection.readpartial(1)
      connection.write("go")
      # The kernel tells of a reset once: here it tells who writes.
      results << error_of(SystemCallError) { loop { connection.write("x" * 100_000) } }
      3.times { results << error_of(SystemCallError) { connection.readpartial(1) } }
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

  def test_a_peer_that_half_closed_gets_its_response
    input = []
    handler = lambda do |connection|
      input << connection.readpartial(10) << connection.readpartial(10) << connection.readpartial(10)
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

  def test_the_last_bytes_of_a_closed_unix_peer_are_read
    Dir.mktmpdir do |folder|
      heard = []
      handler = ->(connection) { heard << connection.readpartial(10) << connection.readpartial(10) }
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

  def test_an_interrupted_wait_leaves_a_connection_that_works
    seen = []
    handler = lambda do |connection|
      connection.readpartial(1)
      seen << error_of(Timeout::Error) { Timeout.timeout(0.02) { connection.readpartial(1) } }.class
      connection.write("go on")
      seen << connection.readpartial(10)
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
end
Heddle::TestHelpers.with_each_event_set(ConnectionReadingTests)
