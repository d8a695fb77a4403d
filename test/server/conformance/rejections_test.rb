# frozen_string_literal: true

require_relative "support/cases"

# Error responses: each reaches the client, whatever it still sends, and ends the connection in time (RFC 9112, 9.6;
# http.md "lingers").
class RejectionsConformanceTest < Minitest::Test
  include Conformance

  LINGER_LIMIT = 300_000
  # A client that takes longer for its next bytes gets a reset.
  served_with linger_timeout: 0.5, linger_limit: LINGER_LIMIT, body_limit: 1_000

  at("/fails") { raise "on purpose" }

  class << self
    def wrong
      { 400 => "GET / HTTP/1.1\r\n\r\n", 413 => post("Content-Length: 1001"), 414 => "GET /#{"a" * 20_000}",
        417 => request("Expect: x"), 431 => request("X-A: #{"b" * 40_000}"), 501 => post("Transfer-Encoding: gzip"),
        505 => request(line: "GET / HTTP/2.0") }
    end
  end

  wrong.each do |status, bytes|
    refuses "with #{status} in words", status, bytes
    conform "sends #{status} to a client that goes on sending", bytes do |client|
      10.times { client.send_at_once("x" * 20_000) }

      assert_rejection status, client.answer
      assert_nil client.answer
    end
    conform "sends #{status} to a client that reads late", bytes do |client|
      assert client.socket.wait_readable(Server::PATIENCE)
      client.send_at_once("x" * 1_000)

      assert_rejection status, client.answer
      assert_nil client.answer
    end
    conform "sends #{status} to a client that has closed its side", bytes do |client|
      client.close_write

      assert_rejection status, client.answer
      assert_nil client.answer
    end
    conform "ends a connection refused with #{status} though the client never does", bytes, bytewise: false do |client|
      assert_rejection status, client.answer
      assert_nil client.answer
      # The server still reads, and stops to before long: then writing fails.
      assert_cut_off(client)
    end
  end

  # The client writes until the server has closed the connection.
  def assert_cut_off(client)
    deadline = now + Server::PATIENCE
    assert_raises(SystemCallError) do
      while now < deadline
        client.socket.write_nonblock("x")
        sleep 0.001
      end
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  conform "reads no more than its limit of what a refused client sends", "GET / HTTP/1.1\r\n\r\n" do |client|
    assert_rejection 400, client.answer
    sent = 0
    assert_raises(SystemCallError) { loop { sent += client.socket.write("x" * 10_000) } }
    # What the system itself buffers for both sides comes on top.
    assert_operator sent, :<, LINGER_LIMIT + 20_000_000
  end

  conform "answers an application that fails", get("/fails"), errors: /on purpose/ do |client|
    answer = client.answer

    assert_rejection 500, answer
    refute_includes answer.content, "on purpose"
    assert_nil client.answer
  end
  conform "answers an application that fails while the body comes", post("Content-Length: 900", path: "/fails"),
          errors: /on purpose/ do |client|
    client.send_at_once("x" * 900)

    assert_rejection 500, client.answer
    assert_nil client.answer
  end
end
