# frozen_string_literal: true

require_relative "support/cases"

# RFC 9112, 9: whether a connection stays open, and pipelined requests.
class ConnectionsConformanceTest < Minitest::Test
  include Conformance

  served_with stream_bodies: %w[/unread/streamed]
  at("/unread") { [200, {}, ["unread"]] }
  at("/unread/streamed") { [200, {}, ["unread"]] }
  at("/closes") { [200, { "connection" => "close" }, ["last"]] }
  at("/stream") { [200, {}, ->(stream) { stream << "a" << "b" && stream.close }] }
  at("/each") { [200, {}, %w[a b c].each] }

  last = "Connection: close"
  {
    "no Connection" => [], "keep-alive" => ["Connection: keep-alive"], "Keep-Alive" => ["Connection: Keep-Alive"],
    "an empty Connection" => ["Connection:"], "a list of nothing" => ["Connection: , ,"],
    "closed" => ["Connection: closed"],
    "close in a name" => ["Connection: x-close"], "close in quotes" => ["Connection: \"close\""],
    "a header called Close" => ["Close: close"], "another option" => ["Connection: X-A"],
    "TE" => ["Connection: TE"], "an upgrade to nothing" => ["Connection: upgrade"]
  }.each { |name, lines| accepts "#{name} and goes on", request(*lines) }
  {
    "close" => [last], "Close" => ["Connection: Close"], "CLOSE" => ["Connection: CLOSE"],
    "close after keep-alive" => ["Connection: keep-alive, close"],
    "close before keep-alive" => ["Connection: close, keep-alive"],
    "close in a second line" => ["Connection: keep-alive", last],
    "close in a first line" => [last, "Connection: keep-alive"],
    "close without a space" => ["Connection: a,close,b"],
    "close with white space" => ["Connection: a \t, \t close \t , b"],
    "close between nothing" => ["Connection: ,,close,,"], "close in another spelling" => ["cONNECTION: cLoSe"]
  }.each { |name, lines| accepts "#{name} and closes", request(*lines), closes: true }

  # Answers to requests that were sent ahead come in order, each whole.
  def assert_paths(client, *paths)
    paths.each { |path| assert_seen(client.answer, { "PATH_INFO" => path }, nil) }
  end

  conform "answers two requests in order", get("/1") + get("/2", last) do |client|
    assert_paths(client, "/1", "/2")
    assert_nil client.answer
  end
  conform "answers fifty requests in order", (1..49).map { |one| get("/#{one}") }.join + get("/50", last) do |client|
    assert_paths(client, *(1..50).map { |one| "/#{one}" })
    assert_nil client.answer
  end
  thousand = (1..999).map { |one| get("/#{one}") }
  conform "answers a thousand requests in order", thousand.join + get("/last", last) do |client|
    assert_paths(client, *(1..999).map { |one| "/#{one}" }, "/last")
    assert_nil client.answer
  end
  conform "answers requests of all kinds in order",
          get("/1") + post("Content-Length: 3", path: "/2", body: "abc") +
          post("Transfer-Encoding: chunked", path: "/3",
                                             body: "3\r\nabc\r\n0\r\nX-A: b\r\n\r\n") + get("/4", last) do |client|
    assert_seen client.answer, { "PATH_INFO" => "/1" }, ""
    assert_seen client.answer, { "PATH_INFO" => "/2" }, "abc"
    assert_seen client.answer, { "PATH_INFO" => "/3" }, "abc"
    assert_seen client.answer, { "PATH_INFO" => "/4" }, ""
  end
  conform "answers bodies of all kinds in order",
          get("/each") + get("/stream") + get("/1") + get("/each", last) do |client|
    assert_equal %w[abc ab], [client.answer.content, client.answer.content]
    assert_paths(client, "/1")
    assert_equal "abc", client.answer.content
    assert_nil client.answer
  end
  conform "answers HEAD among others", request(line: "HEAD /1 HTTP/1.1") + get("/2") +
                                       request(last, line: "HEAD /3 HTTP/1.1") do |client|
    assert_equal 200, client.answer("HEAD").status
    assert_paths(client, "/2")
    assert_equal 200, client.answer("HEAD").status
    assert_nil client.answer
  end

  refuses "a third request after two good ones", 400, "#{get("/1")}#{get("/2")}GET /3 HTTP/1.1\r\n\r\n", before: 2
  refuses "rubbish after a good request", 400, "#{get("/1")}rubbish\r\n\r\n", before: 1
  refuses "rubbish after a body", 400, "#{sized("abc")}rubbish\r\n\r\n", before: 1
  refuses "a body that is longer than its length", 400, "#{post("Content-Length: 3", body: "abc")}\0", before: 1
  refuses "something after the last chunk", 400, "#{chunked("0\r\n\r\n")}\0\0", before: 1
  refuses "a second last chunk", 400, "#{chunked("0\r\n\r\n")}0\r\n\r\n", before: 1
  refuses "two empty lines between requests", 400, "#{get("/1")}\r\n\r\n#{get("/2")}", before: 1
  accepts "an empty line after a request", "#{request}\r\n"
  conform "accepts an empty line after a body, as old clients send it",
          "#{sized("abc")}\r\n#{get("/1", last)}" do |client|
    assert_seen client.answer, {}, "abc"
    assert_paths(client, "/1")
  end

  ["/closes", "/"].each do |path|
    lines = path == "/" ? [last] : []
    conform "answers nothing that comes after the last request to #{path}", get(path, *lines) + get("/never"),
            bytewise: false do |client|
      assert_predicate client.answer, :closes?
      assert_nil client.answer
      assert_equal 1, calls
    end
  end
  # RFC 9112, 9.6: what the client sends after that must not make the system take the answer from it by a reset.
  conform "sees the end and no reset after the last answer", get("/closes") do |client|
    assert_predicate client.answer, :closes?
    3.times { client.send_at_once(get("/never")) }

    assert_nil client.answer
  end
  conform "answers nothing after a rejection", "GET / HTTP/1.1\r\n\r\n#{get("/never")}" do |client|
    assert_rejection 400, client.answer
    assert_nil client.answer
    assert_equal 0, calls
  end

  # What the application leaves of a body is never taken for the next request.
  [10, 60_000].each do |size|
    body = get("/smuggled").ljust(size, "x").b
    conform "skips an unread body of #{size} bytes",
            post("Content-Length: #{body.bytesize}", path: "/unread", body:) + get("/1", last) do |client|
      assert_equal "unread", client.answer.content
      assert_paths(client, "/1")
      assert_nil client.answer
    end
    conform "skips an unread chunked body of #{size} bytes",
            post("Transfer-Encoding: chunked", path: "/unread",
                                               body: "#{body.bytesize.to_s(16)}\r\n#{body}\r\n0\r\n\r\n") +
            get("/1", last) do |client|
      assert_equal "unread", client.answer.content
      assert_paths(client, "/1")
    end
  end
  conform "closes rather than to read a large streamed body that nobody wants",
          post("Content-Length: 60000000", path: "/unread/streamed", body: get("/smuggled")) do |client|
    assert_equal "unread", (answer = client.answer).content
    assert_ended(client, answer)
  end

  conform "says nothing before a request and after an answer" do |client|
    assert_predicate client, :quiet?
    client.send_at_once(request)

    assert_equal 200, client.answer.status
    assert_predicate client, :quiet?
    client.send_at_once(PROBE)

    assert_equal 200, client.answer.status
  end
  conform "takes an empty line for no request", "\r\n" do |client|
    assert client.quiet?(0.05)
    client.send_at_once(PROBE)

    assert_equal 200, client.answer.status
  end
end
