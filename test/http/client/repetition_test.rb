# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"

# What is sent a second time, and what never is.
class RepetitionTest < ClientCase
  # Answers the first request of a connection; the second one is read, and the connection closed.
  def serve_one_each
    serve do |socket, request, _|
      @counts ||= Hash.new(0)
      key = socket.object_id
      (@counts[key] += 1) == 1 ? socket.write(hello(request.target)) : socket.close
    end
  end

  def test_a_get_on_a_connection_that_the_server_closes_is_sent_again
    server = serve_one_each
    client = Client.new(server.url, proxy: nil)

    assert_equal %w[/1 /2 /3], (1..3).map { |n| client.get("/#{n}").body }
    assert_equal %w[/1 /2 /2 /3 /3], server.received.map(&:target)
  end

  def test_a_post_on_a_connection_that_the_server_closes_is_not_sent_again
    server = serve_one_each
    client = Client.new(server.url, proxy: nil)
    client.get("/1")

    error = assert_raises(Client::OutcomeUnknownError) { client.post("/2", body: "x") }
    assert_match(/the server may or may not have processed the request/, error.message)
    assert_equal %w[/1 /2], server.received.map(&:target)
  end

  def test_a_patch_is_like_a_post
    server = serve_one_each
    client = Client.new(server.url, proxy: nil)
    client.get("/1")

    assert_raises(Client::OutcomeUnknownError) { client.patch("/2", body: "x") }
  end

  def test_a_fresh_connection_that_ends_is_an_error_for_every_method
    server = serve { |socket, _| socket.close }
    client = Client.new(server.url, proxy: nil)

    assert_instance_of Client::ConnectionLostError, assert_raises(Client::ConnectionLostError) { client.get("/") }
    assert_raises(Client::OutcomeUnknownError) { client.post("/", body: "x") }
    assert_equal 2, server.received.size
  end

  def test_a_put_with_a_body_that_is_read_once_is_not_sent_again
    server = serve_one_each
    client = Client.new(server.url, proxy: nil)
    client.get("/1")

    assert_raises(Client::ConnectionLostError) { client.put("/2", body: %w[a b].each) }
    assert_equal %w[/1 /2], server.received.map(&:target)
  end

  def test_a_put_with_an_io_is_sent_again_from_its_start
    server = serve_one_each
    client = Client.new(server.url, proxy: nil)
    client.get("/1")

    assert_equal "/2", client.put("/2", body: StringIO.new("whole")).body
    assert_equal %w[whole whole], server.received.last(2).map(&:body)
  end

  # The check before a request sees what the server has closed: a POST that follows is sent over a new one.
  def test_a_connection_that_is_closed_while_idle_carries_no_request
    closing = Thread::Queue.new
    closed = Thread::Queue.new
    server = serve do |socket, request, number|
      socket.write(hello(request.target))
      closed.push(socket.close) if number == 1 && closing.pop
    end
    client = Client.new(server.url, proxy: nil)
    client.get("/1")
    closing.push(true)
    closed.pop

    assert_equal "/2", client.post("/2", body: "x").body
    assert_equal %w[/1 /2], server.received.map(&:target)
  end

  def test_an_answer_before_the_whole_body_was_taken_counts
    server = serve(wrap: lambda { |socket|
      socket.gets("\r\n\r\n")
      socket.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch")
      Thread.stop # reads no more, and does not close
    })
    client = Client.new(server.url, proxy: nil)
    endless = Enumerator.new { |body| 2_000.times { body << ("x" * 65_536) } }

    response = client.post("/", body: endless)

    assert_equal [413, "much"], [response.status, response.body]
  end
end
