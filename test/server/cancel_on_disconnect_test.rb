# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"
require_relative "tls_helpers"
require "support/h2_client"

# A client that leaves cancels its request, where the option says so.
class CancelOnDisconnectTest < Minitest::Test
  include ServerHelpers
  include TLSHelpers

  # An application that waits without an end, and reports how its wait ended.
  def waiting
    @arrived = Thread::Queue.new
    @ended = Thread::Queue.new
    lambda do |env|
      wait_in(env)
      [200, { "content-type" => "text/plain" }, []]
    end
  end

  def wait_in(env)
    @arrived << env["PATH_INFO"]
    sleep
  rescue Exception => e
    @ended << e.class
    raise
  end

  def await_arrival
    @arrived.pop(timeout: PATIENCE) or raise "the request never came"
  end

  # @return [Class] of what the wait has ended with
  def await_end
    @ended.pop(timeout: PATIENCE) or raise "the request was never cancelled"
  end

  def request(socket = connect, method: "GET", path: "/")
    socket.write("#{method} #{path} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")
    await_arrival
    socket
  end

  # Closed with a reset.
  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
  end

  def test_a_client_that_closes_its_connection_cancels_its_request
    serving(waiting, cancel_on_disconnect: :all) do
      request.close

      assert_equal Heddle::Cancelled, await_end
      assert_equal 0, until_statistics { |found| found[:running].zero? }[:connections]
    end
    assert_equal 1, @log.gone
    assert_empty errors.string
  end

  def test_a_client_that_resets_its_connection_cancels_its_request
    serving(waiting, cancel_on_disconnect: :all) do
      reset(request)

      assert_equal Heddle::Cancelled, await_end
    end
  end

  def test_over_tls
    serving_tls(waiting, cancel_on_disconnect: :all) do
      request(connect_tls).close

      assert_equal Heddle::Cancelled, await_end
    end
  end

  def http2
    client = H2Client.new(connect)
    client.send_preface
    yield client
  ensure
    client&.close
  end

  def test_over_http2_the_reset_of_a_stream_cancels_its_request_alone
    serving(waiting, lint: false, cancel_on_disconnect: :all) do
      http2 do |client|
        [1, 3].each do |stream|
          client.send_frame("HEADERS es+eh #{stream} get")
          await_arrival
        end
        client.send_frame("RST_STREAM - 1 #8")

        assert_equal Heddle::Cancelled, await_end
        until_statistics { |found| found[:running] == 1 }

        assert_empty @ended
      end

      assert_equal Heddle::Cancelled, await_end, "when the connection is closed"
    end
  end

  def test_a_response_that_has_begun_is_cancelled_too
    waiting
    body = Enumerator.new do |parts|
      parts << "begun"
      wait_in("PATH_INFO" => "body")
    end
    serving(->(_) { [200, { "content-type" => "text/plain" }, body] }, cancel_on_disconnect: :safe) do
      request.close

      assert_equal Heddle::Cancelled, await_end
    end
  end

  def test_a_streaming_body_that_has_written_nothing_is_cancelled_too
    waiting
    body = lambda do |stream|
      wait_in("PATH_INFO" => "body")
    ensure
      stream.close
    end
    serving(->(_) { [200, { "content-type" => "text/plain" }, body] }, cancel_on_disconnect: :all) do
      request.close

      assert_equal Heddle::Cancelled, await_end
      assert_equal 0, until_statistics { |found| found[:running].zero? }[:connections]
    end
    assert_empty errors.string
  end

  def test_tasks_of_the_request_end_with_it
    app = waiting
    children = ->(env) { 2.times.map { Heddle.async { app.call(env) } }.map(&:value).first }
    serving(children, cancel_on_disconnect: :all) do
      socket = request
      await_arrival
      socket.close

      assert_equal [Heddle::Cancelled] * 2, [await_end, await_end]
    end
  end

  def test_a_shield_holds_it_back
    gate = Thread::Queue.new
    log = Thread::Queue.new
    app = lambda do |_env|
      Heddle.shield { (@arrived << true) && gate.pop && log << :finished }
      sleep
    ensure
      log << :left
    end
    waiting
    serving(app, cancel_on_disconnect: :all) do
      request.close
      connect.close
      until_statistics { |found| found[:accepted] == 2 && found[:connections] == 1 } # it has seen one leave, so both
      gate << true

      assert_equal(%i[finished left], 2.times.map { log.pop(timeout: PATIENCE) })
    end
  end

  def test_safe_leaves_requests_alone_that_may_change_something
    app, arrivals, release = waiting_application
    @arrived = arrivals
    serving(app, lint: false, cancel_on_disconnect: :safe) do
      request(method: "POST").close
      until_statistics { |found| found[:connections] <= 1 }
      release << true
      until_statistics { |found| found[:running].zero? }
    end

    assert_empty errors.string
  end

  def test_without_the_option_the_request_runs_on
    app, arrivals, release = waiting_application
    @arrived = arrivals
    serving(app, lint: false) do
      request.close
      release << true
      until_statistics { |found| found[:running].zero? }
    end

    assert_empty errors.string
  end

  def test_clients_that_stay_notice_nothing
    serving(text, cancel_on_disconnect: :all) do
      socket = connect
      3.times do
        socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")

        assert read_answer(socket).end_with?("hello")
      end
      socket.close
    end
    assert_equal 0, @log.gone
  end

  def test_a_client_that_has_ended_its_side_before_its_request_ran_counts_as_one_that_has_left
    serving(waiting, cancel_on_disconnect: :all) do
      socket = connect
      socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
      socket.close_write

      assert_match(%r{\AHTTP/1.1 400 }, read_all(socket))
    end
  end

  def test_cancel_on_disconnect_is_rejected_in_modes_that_cannot_cancel
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Heddle::Server::Configuration.new(mode: :thread, cancel_on_disconnect: :all)
    end

    assert_includes error.message, "Set cancel_on_disconnect :off"
  end
end
