# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/support/bench"
require_relative "../../../benchmark/stalls/crowd"

class StallsBenchmarkCrowdTest < Minitest::Test
  PLAIN = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
  CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"

  def setup
    @server = TCPServer.new("127.0.0.1", 0)
    @crowd = Bench::Stalls::Crowd.new(@server.local_address.ip_port)
  end

  def teardown
    @answering&.kill
    @server.close
  end

  def test_answers_are_awaited_to_their_ends
    answer { |socket, asked| [PLAIN, CHUNKED][asked.size % 2].each_char { |byte| socket.write(byte) } }
    clients = @crowd.ask("/a", 2) + @crowd.ask("/ab", 2)
    @crowd.await(clients)

    assert_equal [200] * 4, clients.map(&:status)
    assert_equal ["ok"] * 4, clients.map(&:body)
    clients.each { |client| assert_operator client.seconds, :>, 0 }
  end

  def test_an_answer_that_is_not_a_200_is_a_failure
    answer { |socket, _| socket.write(PLAIN.sub("200 OK", "503 Busy")) }
    error = assert_raises(Bench::Child::Failed) { @crowd.await(@crowd.ask("/", 1)) }

    assert_equal "answered 503", error.message
  end

  def test_a_connection_that_breaks_off_is_a_failure
    answer { |socket, _| socket.close }

    assert_raises(Bench::Child::Failed) { @crowd.await(@crowd.ask("/", 1)) }
  end

  def test_a_request_without_a_response_counts_with_its_waiting_time
    answer { |socket, asked| socket.write(PLAIN) unless asked.include?("never") }
    took = @crowd.repeat(@crowd.clients(2), "/", pause: 0.01, seconds: 1)

    assert_operator took.size, :>, 2
    took = @crowd.repeat(@crowd.clients(2), "/never", pause: 0.01, seconds: 0.1)

    assert_equal 2, took.size
    took.each { |seconds| assert_operator seconds, :>, 0 }
  end

  private

  def answer
    @answering = Thread.new do
      loop do
        socket = @server.accept
        Thread.new do
          while (line = socket.gets)
            nil until socket.gets == "\r\n"
            yield socket, line[/GET (\S+)/, 1]
          end
        rescue IOError, SystemCallError
          nil
        end
      end
    end
  end
end
