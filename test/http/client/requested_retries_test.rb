# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"

# `retries:`, what is sent again because the user wants it.
class RequestedRetriesTest < ClientCase
  # The longest pause there may be.
  class Longest
    def self.rand = 1.0
  end

  Head = Struct.new(:status, :fields)
  Asked = Struct.new(:idempotent?, :replayable?)
  # Stands for a request that is sent: the error of each try.
  Failing = Struct.new(:errors) do
    def head = raise(errors.shift)
  end

  # Answers with each of these in turn, then with 200.
  def serve_answers(*answers)
    serve { |socket, _| socket.write(answers.shift || hello) }
  end

  def busy(status) = "HTTP/1.1 #{status} Busy\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"

  def client(server, retries, **) = Client.new(server.url, proxy: nil, retries:, **)

  def retries(retries, seconds_left = nil)
    deadline = seconds_left && (now + seconds_left)
    Client::RequestedRetries.new(retries, deadline, random: Longest)
  end

  def head(status = 503, retry_after = nil) = Head.new(status, retry_after ? ["retry-after", retry_after] : [])

  def test_a_get_is_sent_again_until_its_response_is_another
    server = serve_answers(busy(503), busy(429))

    assert_equal [200, "hello"], client(server, 2).get("/").then { |answer| [answer.status, answer.body] }
    assert_equal [3, 1], [server.received.size, server.connections]
  end

  def test_a_stream_begins_with_the_response_that_stands
    server = serve_answers(busy(502))

    assert_equal 200, client(server, 1).stream(:get, "/", &:status)
  end

  def test_retries_are_limited
    server = serve_answers(busy(504), busy(503), busy(502))

    assert_equal 503, client(server, 1).get("/").status
    assert_equal 502, client(server, 0).get("/").status
    assert_equal 3, server.received.size
  end

  def test_a_post_is_not_sent_again_whatever_the_response
    server = serve_answers(busy(503))

    assert_equal 503, client(server, 5).post("/", body: "once").status
    assert_equal 1, server.received.size
  end

  def test_a_get_whose_connection_is_lost_is_sent_again_and_a_post_is_not
    server = serve do |socket, request, number|
      number == 1 || request.method == "POST" ? socket.close : socket.write(hello)
    end

    assert_equal 200, client(server, 1).get("/").status
    assert_raises(Client::OutcomeUnknownError) { client(server, 5, max_connections: 1).post("/", body: "once") }
    assert_equal(%w[GET GET POST], server.received.map(&:method))
  end

  def test_without_a_connection_a_post_is_sent_again_too
    one = retries(1)
    failing = Failing.new([Client::ConnectError.new, Client::ConnectTimeoutError.new])

    assert_nil one.head(Asked.new(false, true), failing)
    assert_raises(Client::ConnectTimeoutError, "no try is left") { one.head(Asked.new(false, true), failing) }
    assert_raises(Client::ConnectError, "its body is gone") do
      retries(1).head(Asked.new(false, false), Failing.new([Client::ConnectError.new]))
    end
  end

  def test_an_error_that_a_retry_cannot_mend_is_raised
    [Client::TLSError, Client::PrivateAddressError, Client::OutcomeUnknownError, Client::FirstByteTimeoutError,
     Client::ProtocolError].each do |error|
      assert_raises(error) { retries(1).head(Asked.new(true, true), Failing.new([error.new])) }
    end
  end

  def test_pauses_double_and_obey_the_server_within_bounds
    one = retries(10)
    pauses = Array.new(8) { one.after?(Asked.new(true, true), head) && one.seconds }

    assert_equal [0.25, 0.5, 1, 2, 4, 8, 10, 10], pauses
    assert one.after?(Asked.new(true, true), head(429, "60"))
    assert_equal 60, one.seconds
    refute one.after?(Asked.new(true, true), head(429, "61")), "too long"
    refute one.after?(Asked.new(true, true), head(500)), "no answer to repeat after"
  end

  def test_no_pause_is_longer_than_the_total_limit
    one = retries(5, 4)

    assert one.after?(Asked.new(true, true), head(503, "2"))
    refute one.after?(Asked.new(true, true), head(503, "5"))
  end

  def test_a_number_that_is_none_is_named
    error = assert_raises(ArgumentError) { Client.new(retries: -1) }

    assert_equal "retries is -1, but must be an Integer of at least 0", error.message
  end
end
