# frozen_string_literal: true

# test: each selector
# test: sanitize

require "test_helper"
require "heddle"
require "socket"
require_relative "../support/scheduled"

class DatagramTest < Minitest::Test
  include Scheduled

  Peer = Heddle::Net::DatagramSocket::Peer

  def setup
    @socket = Heddle::Net::DatagramSocket.bind("127.0.0.1", 0)
    @client = client
  end

  def teardown
    @socket.close
    @client.close
  end

  # A socket that takes datagrams from that address only.
  def client(address = "127.0.0.1", port = @socket.port)
    UDPSocket.new(address.include?(":") ? :INET6 : :INET).tap { |socket| socket.connect(address, port) }
  end

  def in_loop(&) = Heddle.run(selector: selector_under_test, &)

  # What the client has got, in order.
  def responses(client = @client)
    list = []
    while (bytes = client.recv_nonblock(65_535, exception: false)) != :wait_readable
      list << bytes
    end
    list
  end

  def await_response(client = @client)
    assert client.wait_readable(LIMIT), "no response"
    client.recv(65_535)
  end

  def test_datagrams_are_received_and_answered_in_a_thread_and_in_a_loop
    answer = -> { @socket.receive { |bytes, peer| @socket.send(bytes.upcase, peer) } }
    @client.send("from a thread", 0)

    assert_equal 1, answer.call
    assert_equal "FROM A THREAD", await_response
    in_loop do
      receiver = Heddle.async { answer.call }
      Heddle.async { @client.send("in a loop", 0) }

      assert_equal 1, receiver.value
    end
    assert_equal "IN A LOOP", await_response
  end

  def test_a_socket_waits_under_another_scheduler
    receiver = Thread.new { @socket.receive { |bytes, peer| @socket.send(bytes, peer) } }
    until_true { receiver.stop? }
    @client.send("awaited", 0)

    assert_equal "awaited", await_response
    assert_equal 1, receiver.value
  end

  def test_the_peer_of_a_datagram_is_its_sender
    @client.send("x", 0)
    @socket.receive do |bytes, peer, truncated|
      assert_equal [Encoding::BINARY, "x", false], [bytes.encoding, bytes, truncated]
      assert_equal ["127.0.0.1", "\x7F\0\0\1".b, @client.local_address.ip_port],
                   [peer.address, peer.address_bytes, peer.port]
      assert_predicate peer, :frozen?
    end
  end

  def test_at_most_64_datagrams_are_yielded_at_once
    70.times { |number| @client.send(number.to_s, 0) }
    got = []
    counts = Array.new(2) { @socket.receive { |bytes,| got << bytes } }

    assert_equal [64, 6], counts
    assert_equal Array.new(70, &:to_s), got
  end

  def test_a_datagram_that_was_cut_off_is_marked
    small = Heddle::Net::DatagramSocket.bind("127.0.0.1", 0, max_size: 10)
    sender = client("127.0.0.1", small.port)
    [10, 11, 0].each { |size| sender.send("x" * size, 0) }
    got = []
    small.receive { |bytes, _, truncated| got << [bytes.bytesize, truncated] }

    assert_equal [[10, false], [10, true], [0, false]], got
  ensure
    small&.close
    sender&.close
  end

  # The queries of a batch become tasks, which run when the receiver lets them.
  def test_responses_of_tasks_that_a_batch_starts_leave_before_the_next_wait
    3.times { |number| @client.send(number.to_s, 0) }
    in_loop do
      @socket.receive { |bytes, peer| Heddle.async { @socket.send(bytes, peer) } }

      assert_equal %w[0 1 2], responses
    end
  end

  def test_a_later_response_is_not_held_until_the_next_datagram
    2.times { @client.send("query", 0) }
    in_loop do
      peers = []
      receiver = Heddle.async { loop { @socket.receive { |_, peer| peers << peer } } }
      until_true { peers.size == 2 }
      Fiber.scheduler.yield # now it waits
      @socket.send("later", peers.first)

      assert_equal "later", await_response
      receiver.cancel
    end
  end

  def test_a_socket_is_usable_after_an_exception_in_the_block
    2.times { @client.send("query", 0) }
    assert_raises(ArgumentError) do
      @socket.receive do |_, peer|
        @socket.send("answer", peer)
        raise ArgumentError
      end
    end
    assert_equal "answer", await_response
    @client.send("query", 0)
    @socket.receive { |_, peer| @socket.send("at once", peer) }

    assert_equal "at once", await_response
  end

  def test_bytes_that_change_after_a_send_are_sent_as_they_were
    2.times { @client.send("query", 0) }
    bytes = +""
    @socket.receive do |_, peer|
      @socket.send(bytes.replace("first"), peer)
      bytes.replace("other")
    end

    assert_equal %w[first first], responses
  end

  def test_datagrams_that_cannot_be_sent_are_counted_and_take_nothing_from_the_others
    nowhere = Peer.new("127.0.0.1", 0) # no port to send to

    refute @socket.send("x", nowhere)
    refute @socket.send("x" * 70_000, Peer.new("127.0.0.1", 9))
    assert_equal 2, @socket.unsent
    2.times { @client.send("query", 0) }
    @socket.receive do |_, peer|
      @socket.send("before", peer)
      @socket.send("x", nowhere)
      @socket.send("behind", peer)
    end

    assert_equal %w[before behind] * 2, responses
    assert_equal 4, @socket.unsent
  end

  def test_more_than_64_responses_of_a_batch_are_all_sent
    2.times { @client.send("query", 0) }
    @socket.receive { |_, peer| 50.times { |number| @socket.send(number.to_s, peer) } }

    assert_equal Array.new(50, &:to_s) * 2, responses
  end

  # Linux reports that to connected sockets only, other systems to each.
  def test_a_peer_that_has_gone_ends_nothing
    gone = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
    peer = Peer.new("127.0.0.1", gone.local_address.ip_port)
    gone.close
    3.times { @socket.send("x", peer) }
    @client.send("query", 0)

    assert_equal 1, @socket.receive { |bytes,| assert_equal "query", bytes }
  end

  def test_wildcard_addresses_answer_from_the_address_that_was_asked
    { "0.0.0.0" => "127.0.0.7", "::" => "::1" }.each do |wildcard, asked|
      socket = Heddle::Net::DatagramSocket.bind(wildcard, 0)
      sender = client(asked, socket.port)
      [1, 3].each do |count| # at once, and as a batch
        count.times { sender.send("query", 0) }
        got = socket.receive { |bytes, peer| socket.send(bytes, peer) }
        got += socket.receive { |bytes, peer| socket.send(bytes, peer) } while got < count
        count.times { assert_equal "query", await_response(sender) }
      end
    ensure
      socket&.close
      sender&.close
    end
  end

  def test_ipv6_peers
    socket = Heddle::Net::DatagramSocket.bind("::1", 0)
    sender = client("::1", socket.port)
    sender.send("x", 0)
    socket.receive do |_, peer|
      assert_equal ["::1", 16, sender.local_address.ip_port], [peer.address, peer.address_bytes.bytesize, peer.port]
      assert socket.send("y", Peer.new("::1", peer.port))
    end

    assert_equal "y", await_response(sender)
  ensure
    socket&.close
    sender&.close
  end

  def test_closing_ends_a_wait_in_a_loop
    in_loop do
      receiver = Heddle.async do
        @socket.receive { flunk }
      rescue IOError => e
        e
      end
      Heddle.async { @socket.close }

      assert_instance_of IOError, receiver.value
    end
    assert_predicate @socket, :closed?
    assert_raises(IOError) { @socket.send("x", Peer.new("127.0.0.1", 9)) }
    assert_raises(IOError) { @socket.receive { flunk } }
    assert_nil @socket.close
  end

  def test_closing_ends_a_wait_in_a_thread
    receiver = Thread.new { @socket.receive { flunk } }
    receiver.report_on_exception = false
    until_true { receiver.stop? }
    @socket.close

    assert_raises(IOError) { receiver.value }
  end

  def test_closing_in_a_batch_ends_the_receive
    2.times { @client.send("query", 0) }
    assert_raises(IOError) do
      @socket.receive do |_, peer|
        @socket.send("last", peer)
        @socket.close
      rescue IOError
        nil
      end
    end
    assert_equal "last", await_response
  end

  def test_a_cancelled_receiver_leaves_the_socket_usable
    in_loop do
      receiver = Heddle.async { @socket.receive { flunk } }
      Fiber.scheduler.yield
      receiver.cancel
    end
    @client.send("query", 0)

    assert_equal 1, @socket.receive { |bytes,| assert_equal "query", bytes }
  end

  def test_a_block_may_receive_again
    3.times { |number| @client.send(number.to_s, 0) }
    got = []
    @socket.receive do |bytes,|
      got << bytes
      next if got.size > 1

      @client.send("inner", 0)
      @socket.receive { |inner,| got << inner }
    end

    assert_equal %w[0 inner 1 2], got
  end

  def test_a_child_process_has_no_part_in_it
    2.times { @client.send("query", 0) }
    in_child, to_parent = IO.pipe
    pid = nil
    @socket.receive do |_, peer|
      @socket.send("once", peer)
      pid ||= fork do
        @socket.send("from the child", peer)
      rescue IOError => e
        to_parent.write([e.message, @socket.closed?].inspect)
        @socket.close
        exit!(0)
      end
    end
    Process.wait(pid)
    to_parent.close

    assert_equal '["this socket belongs to the parent process, which opened it", true]',
                 in_child.read
    assert_equal %w[once once], responses
    @client.send("query", 0)

    assert_equal(1, @socket.receive { |bytes,| assert_equal "query", bytes })
  end

  # A copy in the child would keep the port.
  def test_the_port_is_free_while_a_child_lives
    hold, release = IO.pipe
    forked, ready = IO.pipe
    pid = fork do
      release.close
      ready.write("x")
      hold.read
      exit!(0)
    end
    forked.read(1)
    port = @socket.port
    @socket.close
    again = Heddle::Net::DatagramSocket.bind("127.0.0.1", port)

    assert_equal [port, "127.0.0.1"], [again.port, again.address]
  ensure
    again&.close
    release.close
    Process.wait(pid)
  end

  def test_wrong_arguments_are_named
    { -> { Heddle::Net::DatagramSocket.bind("localhost", 0) } => /"localhost" is not an IP address: write/,
      -> { Heddle::Net::DatagramSocket.bind("127.0.0.1", 0, max_size: 0) } =>
        /max_size 0 is invalid: it must be 1 to 65535/,
      -> { Heddle::Net::DatagramSocket.bind("", 0) } => /"" is not an IP address: write/,
      -> { Heddle::Net::DatagramSocket.bind("<any>", 0) } => /"<any>" is not an IP address: write/,
      -> { Heddle::Net::DatagramSocket.bind("127.0.0.1", 65_536) } => /port 65536 is invalid: it must be 0 to 65535/,
      -> { Heddle::Net::DatagramSocket.bind("::1%nowhere", 0) } => /"::1%nowhere" is not an IP address: write/,
      -> { Peer.new("192.0.2.1:99", 53) } => /"192.0.2.1:99" is not an IP address: write/,
      -> { Peer.new("[::1]:7", 53) } => /"\[::1\]:7" is not an IP address: write/,
      -> { Peer.new("1.2.3.4\0junk", 53) } => /"1.2.3.4\\u0000junk" is not an IP address: write/,
      -> { Peer.new("1" * 100, 53) } => /"1{100}" is not an IP address: write/,
      -> { Peer.new("127.0.0.1", -1) } => /port -1 is invalid: it must be 0 to 65535/,
      -> { Peer.new("127.0.0.1", 2**70) } => /port #{2**70} is invalid: it must be 0 to 65535/,
      -> { Peer.new("localhost", 1) } => /"localhost" is not an IP address: write/,
      -> { Peer.new("127.0.0.1", 65_536) } => /port 65536 is invalid: it must be 0 to 65535/ }.each do |call, message|
      assert_match message, assert_raises(ArgumentError, &call).message
    end
    assert_raises(TypeError) { @socket.send("x", "127.0.0.1") }
    assert_raises(Errno::EADDRINUSE) { Heddle::Net::DatagramSocket.bind("127.0.0.1", @socket.port) }
    assert_raises(LocalJumpError) { @socket.receive }
  end

  # Else the port would be in use until the descriptor is collected.
  def test_a_wrong_size_leaves_the_port_free
    port = @socket.port
    @socket.close
    { nil => TypeError, 2**70 => RangeError }.each do |size, error|
      assert_raises(error) { Heddle::Net::DatagramSocket.bind("127.0.0.1", port, max_size: size) }
    end
    again = Heddle::Net::DatagramSocket.bind("127.0.0.1", port)

    assert_equal port, again.port
  ensure
    again&.close
  end
end
