# frozen_string_literal: true

require_relative "support/cases"

# A client that closes its own side still gets its responses (RFC 9112, 9.6; http.md "A client that half-closes").
class HalfCloseConformanceTest < Minitest::Test
  include Conformance

  LARGE = "x" * 3_000_000
  at("/large") { [200, {}, [LARGE]] }
  at("/each") { [200, {}, ["a" * 100_000, "b" * 100_000].each] }
  at("/stream") do
    [200, {}, lambda { |stream|
      3.times { |number| stream << "<#{number}>" && sleep(0.001) }
      stream.close
    }]
  end
  at("/late") { sleep(0.02) && [200, {}, ["late"]] }
  at("/reads") { |env| [200, {}, ["#{env["rack.input"].read.bytesize} bytes"]] }

  # The half-close goes with the bytes; what comes then is the answer and the end of the connection.
  def self.half_closed(name, bytes, ...)
    conform(name, bytes) do |client|
      client.close_write
      instance_exec(client, ...)
      assert_nil client.answer
    end
  end

  half_closed("a request is answered", request) { |client| assert_seen client.answer, {}, "" }
  half_closed("a body is read", sized("hello")) { |client| assert_seen client.answer, {}, "hello" }
  half_closed("a chunked body is read", chunked("5\r\nhello\r\n0\r\n\r\n")) do |client|
    assert_seen client.answer, {}, "hello"
  end
  half_closed("a large body is read", post("Content-Length: 200000", path: "/reads", body: "x" * 200_000)) do |client|
    assert_equal "200000 bytes", client.answer.content
  end
  half_closed("requests that were sent ahead are answered", (1..30).map { |number| get("/#{number}") }.join) do |client|
    (1..30).each { |number| assert_seen client.answer, { "PATH_INFO" => "/#{number}" }, "" }
  end
  half_closed("a large answer comes whole", get("/large")) { |client| assert_equal LARGE, client.answer.content }
  half_closed("two large answers come whole", get("/large") * 2) do |client|
    2.times { assert_equal LARGE, client.answer.content }
  end
  half_closed("an enumerated answer comes whole", get("/each")) do |client|
    answer = client.answer

    assert_equal [200_000, true], [answer.content.bytesize, answer.complete]
  end
  half_closed("a streamed answer comes whole", get("/stream")) do |client|
    assert_equal "<0><1><2>", client.answer.content
  end
  half_closed("a late answer comes", get("/late")) { |client| assert_equal "late", client.answer.content }
  half_closed("an answer to HTTP 1.0 comes", "GET / HTTP/1.0\r\n\r\n") do |client|
    assert_equal 200, client.answer.status
  end
  half_closed("a rejection comes", "GET / HTTP/1.1\r\n\r\n") { |client| assert_rejection 400, client.answer }
  half_closed("a rejection after an answer comes", "#{request}x\r\n\r\n") do |client|
    assert_equal 200, client.answer.status
    assert_rejection 400, client.answer
  end
  half_closed("nothing is answered by nothing", "") { nil }
  half_closed("an empty line is answered by nothing", "\r\n") { nil }

  request.bytesize.pred.downto(1) do |size|
    half_closed("a head that ends after #{size} bytes is refused", request[0, size]) do |client|
      assert_rejection 400, client.answer
      assert_equal 0, calls
    end
  end
  conform "a half-close while the application works changes nothing", get("/late") do |client|
    client.socket.wait_readable(0.005)
    client.close_write

    assert_equal "late", client.answer.content
    assert_nil client.answer
  end
end
