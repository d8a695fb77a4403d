# frozen_string_literal: true

require "test_helper"
require "server/web_socket_helpers"
require "support/h2_client"
require "support/h2_web_socket_client"

# How the statistics count a connection that a client uses while no fiber serves it.
class TransitTest < Minitest::Test
  include WebSocketHelpers

  # More than the kernel takes of a client that reads nothing.
  LARGE = "x" * (32 << 20)
  HEAD = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"

  def until_counted(**counts) = until_statistics { |now| now.slice(*counts.keys) == counts }

  def test_a_request_in_parts_is_in_transit_until_it_is_answered
    serving(text) do
      [HEAD[0, 20], "#{HEAD}he"].each do |part|
        client = connect
        client.write(part)
        until_counted(connections: 1, transit: 1, idle: 0, running: 0)
        client.write("#{HEAD}hello".delete_prefix(part))
        read_answer(client)
        until_counted(connections: 1, transit: 0, idle: 1, running: 0)
        client.close
        until_counted(connections: 0, transit: 0, idle: 0)
      end
    end
  end

  def test_a_request_that_runs_is_not_in_transit
    started, go = Array.new(2) { Thread::Queue.new }
    serving(->(_env) { (started << true) && go.pop && [200, {}, []] }) do
      client = connect
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      started.pop(timeout: PATIENCE)
      until_counted(running: 1, transit: 0, idle: 0)
    ensure
      go << true
      client&.close
    end
  end

  def test_a_response_whose_client_reads_slowly_is_in_transit
    serving(->(_env) { [200, { "content-length" => LARGE.bytesize.to_s }, [LARGE]] }, lint: false) do
      client = connect
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      until_counted(connections: 1, transit: 1, idle: 0, running: 0)
    ensure
      client&.close
    end
  end

  def test_an_upload_over_http2_is_in_transit
    serving(text) do
      client = H2Client.new(connect).tap(&:send_preface)
      until_counted(connections: 1, transit: 0, idle: 1)
      client.send_frame("HEADERS eh 1 post")
      client.send_frame('DATA - 1 "he"')
      until_counted(connections: 1, transit: 1, idle: 0, running: 0)
      client.send_frame('DATA es 1 "llo"')
      until_counted(connections: 1, transit: 0, idle: 1, running: 0)
    ensure
      client&.close
    end
  end

  # The client has sent all of it.
  def test_a_stream_that_waits_for_a_free_place_is_not_in_transit
    started, go = Array.new(2) { Thread::Queue.new }
    app = ->(_env) { (started << true) && go.pop && [200, {}, []] }
    serving(app, max_requests: 1) do
      first = connect
      first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      started.pop(timeout: PATIENCE)
      second = H2Client.new(connect).tap(&:send_preface)
      second.send_frame("HEADERS es+eh 1 get")
      until_counted(running: 1, waiting: 1)

      assert_equal [0, 1], server.statistics.values_at(:transit, :idle)
    ensure
      2.times { go << true }
      [first, second].each { |client| client&.close }
    end
  end

  def test_a_silent_web_socket_is_not_in_transit
    serving(upgrading(Echo.new), http2_websockets: true, lint: false) do
      dial
      @clients << H2WebSocketClient.new(H2WebSocketConnection.new(connect).connect("/"))
      until_statistics { |now| now[:connections] == 2 && now[:transit].zero? && now[:running].zero? }
    end
  end

  def test_status_and_metrics_have_them
    serving(text) do
      client = connect
      client.write(HEAD)
      until_counted(transit: 1, idle: 0)
      report = { workers: [{ index: 0, **Heddle::Server::WorkerStatus.new(server, @log).to_h }] }

      assert_includes Heddle::Server::Metrics.new(report).to_s, %(heddle_connections{worker="0",state="transit"} 1\n)
      require "heddle/cli"
      table = Heddle::CLI::StatusText::Workers.new(report[:workers], columns: 200) { 0.0 }.lines.map { |line| line[0][0].split }

      assert_equal %w[1 0], table.first.zip(table.last).to_h.values_at("transit", "idle")
    ensure
      client&.close
    end
  end
end
