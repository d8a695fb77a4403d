# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"

# Streams of events that connect again.
class ClientEventStreamTest < ClientCase
  HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
  NO_MORE = "HTTP/1.1 204 No Content\r\n\r\n"

  # Each connection gets the next of these; then 204.
  def script(*answers)
    serve do |socket, _, number|
      socket.write(answers.fetch(number - 1, NO_MORE))
      socket.close
    end
  end

  def events(server, **)
    found = []
    Client.new(server.url, proxy: nil).events("/", pause: 0.001, **) { |event| found << [event.id, event.data] }
    found
  end

  def last_ids(server) = server.received.map { |request| request["Last-Event-ID"] }

  def test_a_reconnect_continues_after_the_last_complete_event
    server = script("#{HEAD}id: 1\ndata: one\n\nid: 2\ndata: tw", "#{HEAD}id: 2\ndata: two\n\nid: 3\n\n")

    assert_equal [%w[1 one], %w[2 two]], in_loop { events(server) }
    assert_equal [nil, "1", "3"], last_ids(server)
  end

  def test_errors_of_requests_that_the_block_makes_are_the_blocks
    server = script("#{HEAD}id: 1\ndata: one\n\nid: 2\ndata: two\n\n")
    gone = serve { |socket, _| socket.close }
    client = Client.new(server.url, proxy: nil)

    assert_raises(Client::ConnectionLostError) { client.events("/", pause: 0.001) { client.get("#{gone.url}/") } }
    assert_equal 1, server.received.size
  end

  def test_a_stop_iteration_of_the_block_is_the_callers
    server = script("#{HEAD}data: one\n\n")
    client = Client.new(server.url, proxy: nil)
    queue = Thread::Queue.new.close

    assert_raises(ClosedQueueError) { client.events("/", pause: 0.001) { |event| queue << event } }
  end

  def test_an_id_that_no_field_can_carry_is_ignored
    server = script("#{HEAD}id: 1\ndata: one\n\nid: \x01\ndata: two\n\n")

    assert_equal [%w[1 one], %w[1 two]], events(server)
    assert_equal [nil, "1"], last_ids(server)
  end

  def test_a_time_to_wait_that_is_none_is_ignored
    server = script("#{HEAD}retry: #{"9" * 400}\ndata: one\n\n", "#{HEAD}retry: #{"9" * 20}\ndata: two\n\n")

    assert_equal [["", "one"], ["", "two"]], events(server)
  end

  def test_a_stream_begins_after_the_given_event_id
    server = script("#{HEAD}data: one\n\n")

    assert_equal [%w[7 one]], events(server, last_id: "7")
    assert_equal %w[7 7], last_ids(server)
  end

  def test_an_id_that_is_emptied_is_forgotten
    server = script("#{HEAD}id: 1\ndata: one\n\nid\ndata: two\n\n")

    assert_equal [%w[1 one], ["", "two"]], events(server)
    assert_equal [nil, nil], last_ids(server)
  end

  def test_a_server_that_is_overloaded_or_gone_for_a_while_is_asked_again
    server = script("HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", "", "HTTP/1.1 429 x\r\nRetry-After: 0\r\n\r\n",
                    "#{HEAD}data: one\n\n")

    assert_equal [["", "one"]], events(server)
  end

  def test_pauses_grow_and_obey_the_server
    stream = Client::EventStream.new(Client.new, "http://x", pause: 1)
    pauses = Array.new(12) { stream.send(:longer_pause, nil) }

    assert_includes 0.5..1, pauses.first
    assert_includes 4..8, pauses[3]
    assert_includes 30..60, pauses.last
    assert_operator stream.send(:longer_pause, "61"), :>=, 60
    assert_operator Client::RequestedRetries.parse_retry_after((Time.now + 100).httpdate), :>, 90
    assert_equal 0, Client::RequestedRetries.parse_retry_after("soon")
  end

  def test_the_servers_time_to_wait_counts_from_then_on
    server = script("#{HEAD}retry: 1\ndata: one\n\n")
    found = []
    Client.new(server.url, proxy: nil).events("/", pause: 1_000) { |event| found << event.data }

    assert_equal ["one"], found
  end

  def test_a_server_cannot_ask_for_reconnects_without_a_pause
    server = script("#{HEAD}retry: 0\n\n", "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n", "#{HEAD}retry: 0\n\n")
    stream = Client::EventStream.new(Client.new(server.url, proxy: nil), "/")
    pauses = []
    stream.define_singleton_method(:sleep) { |seconds| pauses << seconds }
    stream.each { |event| flunk "there is no event, but got #{event}" }

    assert_equal [0.1, 0.1], pauses.values_at(0, 2)
    assert_includes 0.05..0.1, pauses[1]
  end

  def test_a_response_of_another_type_raises
    [hello, "HTTP/1.1 404 x\r\nContent-Length: 0\r\n\r\n", HEAD.sub("event-stream", "plain")].each do |answer|
      assert_raises(Client::ProtocolError) { events(script(answer)) }
    end
  end

  def test_a_break_ends_it
    server = script("#{HEAD}data: one\n\ndata: two\n\n")
    client = Client.new(server.url, proxy: nil)

    assert_equal("one", client.events("/") { |event| break event.data })
    assert_raises(ArgumentError) { client.events("/") }
  end
end
