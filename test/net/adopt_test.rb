# frozen_string_literal: true

require_relative "support/sockets_case"

# Sockets serve connections that other code has accepted.
module AdoptTests
  def with_sockets(handler = echo, **)
    scheduled do |scheduler|
      sockets = Heddle::Net::Sockets.new(scheduler, set:, **, &handler)
      yield sockets
    ensure
      sockets&.close
    end
  end

  # @return [UNIXSocket] the client's end; the server's is adopted and closed
  def adopted(sockets)
    mine, client = UNIXSocket.pair
    assert_same sockets, sockets.adopt(mine)
    mine.close
    client
  end

  def test_an_adopted_socket_is_served_though_its_object_is_closed
    with_sockets do |sockets|
      client = adopted(sockets)
      2.times do
        client.write("hello")

        assert_equal "hello", client.readpartial(10)
      end
      assert_equal [1, 1], [sockets.connections, sockets.accepted]
      client.close
      until_true { sockets.connections == 0 }
    end
  end

  def test_input_received_before_the_adoption_is_served
    with_sockets do |sockets|
      mine, client = UNIXSocket.pair
      client.write("early")
      client.close_write
      sockets.adopt(mine)
      mine.close

      assert_equal "early", client.read
    end
  end

  def test_the_object_that_was_given_may_stay_open_and_be_adopted_again
    once = ->(connection) { connection.write(connection.readpartial(10)) }
    with_sockets(once) do |sockets|
      mine, client = UNIXSocket.pair
      3.times do
        sockets.adopt(mine)
        client.write("x")

        assert_equal "x", client.readpartial(10)
        until_true { sockets.connections == 0 }
      end
      mine.write("mine")

      assert_equal "mine", client.readpartial(10)
      mine.close
    end
  end

  def test_addresses_are_known
    seen = nil
    handler = lambda do |connection|
      connection.readpartial(1)
      seen = [connection.remote_address, connection.remote_port, connection.local_address, connection.local_port]
    end
    with_sockets(handler) do |sockets|
      listener = TCPServer.new("127.0.0.1", 0)
      client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
      sockets.adopt(listener.accept)
      client.write("x")
      until_true { seen }

      assert_equal ["127.0.0.1", client.local_address.ip_port, "127.0.0.1", listener.local_address.ip_port], seen
    ensure
      [listener, client].compact.each(&:close)
    end
  end

  def test_an_object_that_is_not_an_open_socket_is_rejected
    with_sockets do |sockets|
      mine, = UNIXSocket.pair
      mine.close
      assert_raises(IOError) { sockets.adopt(mine) }
      assert_raises(TypeError) { sockets.adopt("no socket") }
      assert_equal 0, sockets.connections
      sockets.close
      one, = UNIXSocket.pair
      assert_raises(IOError) { sockets.adopt(one) }
    end
  end

  def test_times_of_any_length_are_times
    with_sockets(idle_timeout: 1e17) do |sockets|
      client = adopted(sockets)
      client.write("x")

      assert_equal "x", client.readpartial(10)
    end
  end
end
Heddle::TestHelpers.with_each_event_set(AdoptTests)
