# frozen_string_literal: true

require "test_helper"
require "json"
require "server/web_socket_helpers"
require "support/event_stream_client"
require "support/h2_exchanges"
require "support/served_process"
require "tmpdir"

# However a request ends, its account does not count any time twice, and no part is negative.
class AccountEndingsTest < Minitest::Test
  include WebSocketHelpers
  include H2Exchanges

  # @return [Array<Hash>] the lines of the access log
  def logged(app, **options, &)
    serving(app, lint: false, log_format: :json, **options, &)
    output.string.lines.map { |line| JSON.parse(line, symbolize_names: true) }
          .select { |line| line[:event] == "request" }
  end

  def assert_adds_up(line)
    parts = line.fetch(:account)
    sum = parts.values.sum

    assert_operator parts.values.min, :>=, 0, line.inspect
    assert_operator parts[:other], :<, 0.001, line.inspect
    assert_operator sum, :>=, line[:duration] - 0.001, line.inspect
    assert_operator sum - parts.fetch(:received, 0), :<=, line[:duration] + 0.001, line.inspect
  end

  def test_request_that_becomes_a_web_socket
    handler = Echo.new
    lines = logged(upgrading(handler)) do
      client = dial("/room")
      2.times do
        client.text("a")
        client.message
      end
      client.close(1000)
      client.closing
      nil until handler.calls.pop(timeout: PATIENCE).first == :close
      get("/room") # in the fiber that served the socket
    end

    assert_equal 101, lines.first[:status]
    assert_operator lines.size, :>=, 2
    lines.each { |line| assert_adds_up line }
  end

  # Waits where it is shown, and in an event.
  class Page < Heddle::Live::Page
    template text: "<p><%= @found.inspect %></p>"
    event :look

    def mount(_params) = sleep(0.01)

    def look
      sleep 0.01
      @found = Heddle::Account.current.class
    end
  end

  def test_page_of_live_and_its_socket
    lines = logged(Heddle::Live.new(Page)) do
      token = get("/").body[/data-live="([^"]+)"/, 1]
      client = dial("/live")
      client.text(JSON.generate(token:))
      client.message
      client.text("1") # applied
      client.text(JSON.generate(event: "look", values: {}))

      assert_includes client.message, "NilClass"
      client.close(1000)
      client.closing
      get("/") # in the fiber that served the socket
    end

    assert_equal [200, 101, 200], lines.map { |line| line[:status] }
    lines.each { |line| assert_adds_up line }

    assert_operator lines.first[:account][:sleep], :>=, 0.005
  end

  # Which has a copy of the account.
  def test_request_that_forks_a_child
    reader, writer = IO.pipe
    held, release = IO.pipe
    app = lambda do |_env|
      pid = fork do
        release.close
        held.read
        Heddle.run { sleep 0.01 }
        writer.syswrite(JSON.generate(Heddle::Account.current))
        exit!
      end
      Heddle.async { sleep(0).then { release.close } } # once this fiber waits for the child
      Process.wait(pid)
      [200, {}, []]
    end
    line = logged(app) { get("/") }.last
    [writer, held].each(&:close)

    assert_adds_up line
    assert_operator line[:account][:process], :>=, 0.005
    copy = JSON.parse(reader.read, symbolize_names: true)

    assert_adds_up({ account: copy.select { |_, value| value.is_a?(Numeric) }.except(:total), duration: copy[:total] })
  end

  def test_request_in_a_ractor
    app = "run(Class.new { def call(_env) = [200, {}, [sleep(0.01).to_s]] }.new)"
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config.ru", app)
      served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "--mode", "ractor", "-b", "127.0.0.1:0",
                                  "--log-format", "json", "--control", "off"], folder:)
      3.times { served.get("/") }
      served.stop
      lines = served.output.lines.grep(/"event":"request"/).map { |line| JSON.parse(line, symbolize_names: true) }

      assert_equal 3, lines.size, served.output
      lines.each { |line| assert_adds_up line }
      assert_operator lines.first[:account][:sleep], :>=, 0.005
    end
  end

  def test_request_whose_socket_is_hijacked
    app = lambda do |env|
      socket = env["rack.hijack"].call
      socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\na")
      sleep 0.01
      socket.close
    end
    logged(app) { exchange("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }.each { |line| assert_adds_up line }
  end

  def test_request_that_takes_too_long
    line = logged(->(_env) { sleep 60 }, request_timeout: 0.05) { assert_equal "503", get("/").code }.last

    assert_adds_up line
    assert_operator line[:duration], :>=, 0.045
    # A busy machine adds to these.
    assert_empty line[:account].reject { |_, seconds| seconds < 0.001 }.keys - %i[sleep running ready gc offloaded]
    assert_operator line[:account][:sleep], :>, 0
    assert_operator line[:account][:sleep], :<=, line[:duration]
  end

  def test_request_whose_client_has_gone
    arrived = Thread::Queue.new
    app = lambda do |_env|
      arrived << true
      sleep 60
    end
    line = logged(app, cancel_on_disconnect: :all) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      arrived.pop(timeout: PATIENCE)
      socket.close
      until_statistics { |found| found[:running].zero? }
    end.last

    assert_adds_up line
    assert_operator line[:account].fetch(:sleep), :<=, line[:duration]
  end

  def test_request_that_raises
    line = logged(->(_env) { sleep(0.01) && raise("as it is") }) { assert_equal "500", get("/").code }.last

    assert_adds_up line
  end

  def test_event_stream
    line = logged(->(_env) { Heddle::EventStream.response("account") }) do
      socket = connect
      stream = EventStreamClient.new(socket, "/")
      Heddle::PubSub.publish("account", "a")

      assert stream.event
      socket.close
    end.last

    assert_adds_up line if line
  end

  def test_requests_on_one_connection_of_http2
    lines = logged(->(_env) { [200, {}, [sleep(0.01).to_s]] }) { exchange_together(connect, 20) }

    assert_equal 20, lines.size
    lines.each { |line| assert_adds_up line }
  end

  # The thread computes while its fiber sends.
  def test_streamed_body_of_a_thread
    body = lambda do |stream|
      20.times do
        stream << ("x" * 60_000)
        Array.new(5_000, &:to_s)
      end
      stream.close
    end
    lines = logged(->(_env) { [200, {}, body] }, mode: :thread) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      sleep 0.05
      read_all(socket)
    end

    assert_adds_up lines.last
  end
end
