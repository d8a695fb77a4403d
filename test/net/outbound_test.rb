# frozen_string_literal: true

require "test_helper"
require "heddle"
require "socket"
require "tmpdir"
require_relative "../support/scheduled"

class OutboundTest < Minitest::Test
  include Scheduled

  def setup
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.local_address.ip_port
    @sockets = []
  end

  def teardown
    @sockets.each(&:close)
    @listener.close
  end

  # @return both ends
  def pair
    connection = Heddle::Net.connect("127.0.0.1:#{@port}")
    @sockets << @listener.accept
    [connection, @sockets.last]
  end

  def in_loop(&) = Heddle.run(selector: selector_under_test, &)

  def test_bytes_go_both_ways_in_a_thread_and_in_a_loop
    connection, peer = pair
    connection.write("from a thread")

    assert_equal "from a thread", peer.readpartial(100)
    in_loop do
      connection.write(["from ", "a ", "loop"])

      assert_equal "from a loop", peer.readpartial(100)
      reader = Heddle.async { connection.readpartial(100) }
      peer.write("answer")

      assert_equal "answer", reader.value
    end
    peer.close

    assert_nil connection.readpartial(1)
  end

  def test_one_connection_serves_several_loops_one_after_the_other
    connection, peer = pair
    3.times do |n|
      in_thread do
        in_loop do
          reader = Heddle.async { connection.readpartial(100) }
          peer.write(n.to_s)

          assert_equal n.to_s, reader.value
        end
      end
    end
  end

  def test_only_the_fiber_waits
    connection, peer = pair
    in_loop do
      reader = Heddle.async { connection.readpartial(100) }
      Heddle.async { peer.write("later") }

      assert_equal "later", reader.value
    end
  end

  def test_a_wait_has_a_limit
    connection, = pair

    assert_raises(IO::TimeoutError) { connection.readpartial(1, timeout: 0.01) }
    in_loop { assert_raises(IO::TimeoutError) { connection.readpartial(1, timeout: 0.01) } }
    connection.deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_raises(IO::TimeoutError) { connection.readpartial(1) }
  end

  def test_more_than_the_kernel_takes_is_written_whole
    connection, peer = pair
    data = Random.bytes(8 << 20)
    reader = Thread.new { peer.read(data.bytesize) }
    in_loop { connection.write([data.byteslice(0, 5), data.byteslice(5..)]) }

    assert_equal data, reader.value
    assert_equal data.bytesize, connection.bytes_sent
  end

  def test_a_write_that_the_peer_takes_nothing_of_has_a_limit
    connection, = pair

    assert_raises(IO::TimeoutError) { connection.write("x" * (64 << 20), timeout: 0.05) }
  end

  # A cancelled fiber closes sockets in the middle of its clean-up.
  def test_closing_switches_no_fiber
    in_loop do
      sockets = [pair.first, Heddle::Net::DatagramSocket.bind("127.0.0.1", 0)]
      switched = false
      Heddle.async { switched = true }
      sockets.each(&:close)

      refute switched
    end
  end

  def test_closing_wakes_the_fiber_that_waits
    connection, = pair
    in_loop do
      reader = Heddle.async do
        connection.readpartial(1)
      rescue IOError => e
        e
      end
      Heddle.async { connection.close }

      assert_instance_of IOError, reader.value
    end
    assert_predicate connection, :closed?
    assert_raises(IOError) { connection.write("x") }
  end

  def test_an_idle_connection_that_the_peer_closes_is_stale
    connection, peer = pair

    refute_predicate connection, :stale?
    peer.close
    until_true { connection.stale? }
  end

  def test_an_idle_connection_that_gets_bytes_is_stale
    connection, peer = pair
    peer.write("unasked")
    until_true { connection.stale? }

    assert_equal "unasked", connection.readpartial(100)
  end

  def test_a_child_process_has_no_part_in_it
    connection, peer = pair
    in_child, to_parent = IO.pipe
    pid = fork do
      connection.write("from the child")
    rescue IOError
      to_parent.write(connection.closed? && connection.stale?)
      connection.close
      exit!(0)
    end
    Process.wait(pid)
    to_parent.close

    assert_equal "true", in_child.read
    connection.write("from the parent")

    assert_equal "from the parent", peer.readpartial(100)
  end

  # A copy in the child would keep the connection open.
  def test_the_peer_sees_the_end_while_a_child_lives
    connection, peer = pair
    hold, release = IO.pipe
    pid = fork do
      release.close
      hold.read
      exit!(0)
    end
    connection.close

    assert_nil peer.wait_readable(LIMIT)&.read(1)
  ensure
    release.close
    Process.wait(pid)
  end

  def test_the_collector_takes_connections_that_wait_nowhere
    20.times { pair }
    GC.start
    GC.compact if GC.respond_to?(:compact)
    connection, peer = pair
    GC.compact if GC.respond_to?(:compact)
    connection.write("after")

    assert_equal "after", peer.readpartial(10)
  end

  # The resolver rescues time limits of its own, which are IOErrors.
  def test_time_limit_of_connecting_ends_a_name_resolution_over_tcp
    silent = [["127.0.0.1", @port]]
    in_loop do
      Fiber.scheduler.resolver = Heddle::Net::Resolver.new(nameservers: silent, use_vc: true, timeout: LIMIT)
      assert_raises(Heddle::Net::ConnectTimeoutError) { Heddle::Net.connect("name.test:1", timeout: 0.01) }
    end
  end

  def test_zone_of_an_address_may_be_any_name_of_an_interface
    assert_raises(Socket::ResolutionError) { Heddle::Net.connect("[fe80::1%no-such.1]:1") }
  end

  def test_a_mistaken_endpoint_is_named
    { "example.com" => /"example.com" must have the form host:port/,
      "localhost:70000" => /the port is 70000/ }.each do |endpoint, words|
      assert_match words, assert_raises(ArgumentError) { Heddle::Net.connect(endpoint) }.message
    end
  end

  def test_a_time_limit_that_is_not_a_number_of_seconds_is_refused
    [0, -1, Float::INFINITY, "1"].each do |timeout|
      error = assert_raises(ArgumentError) { Heddle::Net.connect("127.0.0.1:#{@port}", timeout: timeout) }

      assert_match(/timeout: is #{timeout.inspect}/, error.message)
    end
  end

  # Ruby's UNIXSocket.new returns a socket that is not connected then.
  def test_a_unix_socket_whose_queue_is_full_is_asked_again_until_it_has_room
    Dir.mktmpdir do |folder|
      path = File.join(folder, "socket")
      UNIXServer.open(path) do |server|
        fill(server, path)

        assert_raises(Heddle::Net::ConnectTimeoutError) { Heddle::Net.connect("unix:#{path}", timeout: 0.02) }
        in_loop do
          waiting = Heddle.async { Heddle::Net.connect("unix:#{path}") }
          accepted = Array.new(@sockets.size + 1) { server.accept }
          waiting.value.write("served")

          assert_equal "served", accepted.last.readpartial(100)
          accepted.each(&:close)
          waiting.value.close
        end
      end
    end
  end

  def fill(server, path)
    server.listen(1)
    loop do
      @sockets << UNIXSocket.new(path)
      @sockets.last.getpeername
    end
  rescue Errno::ENOTCONN
    @sockets.pop.close
  end

  def test_connecting_raises_when_no_server_listens
    @listener.close
    error = assert_raises(Errno::ECONNREFUSED) { Heddle::Net.connect("127.0.0.1:#{@port}") }

    assert_match(/127\.0\.0\.1:#{@port}/, error.message)
  end

  def test_the_next_address_is_tried_when_one_refuses
    addresses = %w[127.0.0.2 127.0.0.1].map { |host| Addrinfo.tcp(host, @port) }
    socket = Heddle::Net::HappyEyeballs.new(addresses, nil, "name", @port).run

    assert_equal "127.0.0.1", socket.remote_address.ip_address
  ensure
    socket&.close
  end

  def test_the_next_address_is_tried_when_one_is_silent
    addresses = [silent_address, Addrinfo.tcp("127.0.0.1", @port)]
    socket = in_loop { Heddle::Net::HappyEyeballs.new(addresses, nil, "name", @port).run }

    assert_equal @port, socket.remote_address.ip_port
  ensure
    socket&.close
  end

  # The kernel refuses a multicast address before it sends anything.
  def test_after_one_that_fails_at_once_the_next_is_tried_at_once_while_another_is_pending
    addresses = [silent_address, Addrinfo.tcp("224.0.0.1", @port), Addrinfo.tcp("127.0.0.1", @port)]
    attempts = Heddle::Net::HappyEyeballs.new(addresses, nil, "name", @port)
    waits = 0
    attempts.define_singleton_method(:ready_sockets) { (waits += 1) == 1 ? nil : super() } # the first is silent
    socket = in_loop { attempts.run }

    assert_equal ["127.0.0.1", 2], [socket.remote_address.ip_address, waits]
  ensure
    socket&.close
  end

  def test_the_families_take_turns
    order = %w[::1 ::2 ::3 127.0.0.1 127.0.0.2].map { |host| Addrinfo.tcp(host, 1) }
    attempts = Heddle::Net::HappyEyeballs.new(order, nil, "name", 1)

    assert_equal %w[::1 127.0.0.1 ::2 127.0.0.2 ::3], attempts.instance_variable_get(:@waiting).map(&:ip_address)
  end

  def test_a_silent_address_alone_has_a_limit
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.05
    attempts = Heddle::Net::HappyEyeballs.new([silent_address], deadline, "name", 1)

    assert_raises(Heddle::Net::ConnectTimeoutError) { attempts.run }
  end

  private

  # A listener whose queue is full: the kernel drops what comes.
  def silent_address
    full = Socket.new(:INET, :STREAM)
    full.bind(Addrinfo.tcp("127.0.0.3", 0))
    full.listen(0)
    address = full.local_address
    @sockets << full
    4.times { @sockets << Socket.new(:INET, :STREAM).tap { |one| one.connect_nonblock(address, exception: false) } }
    address
  end
end
