# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require "socket"
require "support/free_port"

# The requests that the demo makes of itself, against a server of a few lines in the same loop.
class DemoFanOutTest < Minitest::Test
  def test_events_report_the_start_and_end_of_each_request
    events = collect(count: 3) { |connection| connection.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") }

    assert_equal(%w[start start start], events.first(3).map { |event| event["event"] })
    assert_equal [0, 1, 2], requests(events, "start")
    assert_equal [0, 1, 2], requests(events, "end")
    assert_equal "done", events.last["event"]
    assert_equal(events.map { |event| event["at"] }.sort, events.map { |event| event["at"] })
  end

  def test_event_has_the_status_of_a_response_that_is_not_a_success
    events = collect(count: 1) { |connection| connection.write("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n") }

    assert_equal([503], events.filter_map { |event| event["status"] })
  end

  def test_refused_request_has_failed_and_names_the_error
    port = FreePort.find
    events = Heddle.run { parse(fan_out(port, 2)) }

    assert_equal [0, 1], requests(events, "failed")
    assert_match(/ECONNREFUSED/, events.find { |event| event["event"] == "failed" }["message"])
  end

  def test_open_requests_are_cancelled_when_the_reader_fails
    closed = []
    raised = assert_raises(IOError) do
      with_server(->(connection) { closed << connection.read }) do |port|
        fan_out(port, 5).each { |line| raise IOError, "gone" if line.include?("\"request\":4") }
      end
    end

    assert_equal "gone", raised.message
    assert_operator closed.size, :<=, 5 # those that had connected; none is left open, or this would not end
  end

  private

  def fan_out(port, count)
    Heddle::CLI::Demo::FanOut.new("127.0.0.1", port, ["/"] * count)
  end

  def collect(count:, &answer)
    with_server(answer) { |port| parse(fan_out(port, count)) }
  end

  def parse(body)
    body.to_enum.map { |line| JSON.parse(line) }
  end

  def requests(events, name)
    events.select { |event| event["event"] == name }.map { |event| event["request"] }.sort
  end

  def with_server(answer)
    Heddle.run do
      server = TCPServer.new("127.0.0.1", 0)
      accepting = Heddle.async(background: true) { loop { serve(server.accept, answer) } }
      yield server.addr[1]
    ensure
      accepting&.cancel # closing the socket would raise in it on Ruby 4.0
      server&.close
    end
  end

  def serve(connection, answer)
    Heddle.async do
      connection.gets("\r\n\r\n")
      answer.call(connection)
    ensure
      connection.close
    end
  end
end
