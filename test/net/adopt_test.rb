# frozen_string_literal: true

require "heddle/rack"
require_relative "support/sockets_case"

# Sockets serve connections that other code has accepted.
module AdoptTests
  def with_sockets(handler = echo, **)
    scheduled do |scheduler|
      sockets = sockets_with(scheduler, handler, **)
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
    client.extend(Heddle::TestHelpers::HTTPClient)
  end

  def test_an_adopted_socket_is_served_though_its_object_is_closed
    with_sockets do |sockets|
      client = adopted(sockets)
      2.times do
        assert_equal "hello", client.ask("hello").answer
      end
      assert_equal [1, 1], [sockets.connections, sockets.accepted]
      client.close
      until_true { sockets.connections == 0 }
    end
  end

  def test_input_received_before_the_adoption_is_served
    with_sockets do |sockets|
      mine, client = UNIXSocket.pair
      client.extend(Heddle::TestHelpers::HTTPClient).ask("early")
      client.close_write
      sockets.adopt(mine)
      mine.close

      assert_equal "early", client.answer
      assert_nil client.read(1)
    end
  end

  def test_the_object_that_was_given_may_stay_open_and_be_adopted_again
    once = ->(exchange) { exchange.write("x") } # what has no end ends its connection
    with_sockets(once) do |sockets|
      mine, client = UNIXSocket.pair
      3.times do
        sockets.adopt(mine)
        client.write(Heddle::TestHelpers::HTTPClient.request)

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
    with_sockets(->(exchange) { seen = addresses_of(exchange) }) do |sockets|
      listener = TCPServer.new("127.0.0.1", 0)
      client = TCPSocket.new("127.0.0.1", listener.local_address.ip_port)
      sockets.adopt(listener.accept)
      client.write("GET / HTTP/1.0\r\n\r\n")
      until_true { seen }

      assert_equal ["127.0.0.1", "127.0.0.1", listener.local_address.ip_port.to_s], seen
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
end
Heddle::TestHelpers.with_each_event_set(AdoptTests)
