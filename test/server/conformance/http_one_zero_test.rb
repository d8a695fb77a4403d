# frozen_string_literal: true

require_relative "support/cases"

# RFC 9112, 9.3 and appendix C: clients of HTTP/1.0.
class HttpOneZeroConformanceTest < Minitest::Test
  include Conformance

  at("/each") { [200, {}, %w[a b].each] }
  at("/stream") { [200, {}, ->(stream) { stream << "a" << "b" && stream.close }] }
  at("/length") { [200, { "content-length" => "2" }, %w[a b].each] }
  at("/hints") { |env| [200, {}, [env.key?("rack.early_hints").to_s]] }
  at("/204") { [204, {}, []] }
  at("/304") { [304, {}, []] }

  class << self
    def old(path, *lines, method: "GET", body: "")
      [["#{method} #{path} HTTP/1.0", *lines, "", body].map(&:b).join("\r\n")]
    end
  end

  accepts "no host", *old("/"),
          env: { "HTTP_HOST" => nil, "SERVER_NAME" => "127.0.0.1", "SERVER_PROTOCOL" => "HTTP/1.0" }, closes: true
  accepts "a host", *old("/", "Host: b:8"), env: { "HTTP_HOST" => "b:8", "SERVER_NAME" => "b", "SERVER_PORT" => "8" },
                                            closes: true
  accepts "an absolute target without a host", *old("http://b/c"), env: { "HTTP_HOST" => "b", "PATH_INFO" => "/c" },
                                                                   closes: true
  accepts "close", *old("/", "Connection: close"), closes: true
  accepts "another option", *old("/", "Connection: x"), closes: true
  accepts "close with keep-alive", *old("/", "Connection: close, keep-alive"), closes: true
  accepts "a header called Keep-Alive alone", *old("/", "Keep-Alive: timeout=5"), closes: true
  accepts "no length as no body", *old("/", method: "POST"), body: "", closes: true
  accepts "a length", *old("/", "Content-Length: 5", method: "POST", body: "hello"), body: "hello", closes: true
  accepts "a length with keep-alive",
          *old("/", "Content-Length: 5", "Connection: keep-alive", method: "POST", body: "hello"),
          body: "hello"
  ["keep-alive", "Keep-Alive", "KEEP-ALIVE", "x, keep-alive", "keep-alive ,x"].each do |value|
    conform "goes on after #{value} #{value.sum}, and says so", *old("/", "Connection: #{value}") do |client|
      answer = client.answer

      assert_equal "keep-alive", answer["connection"]
      assert_goes_on(client, answer)
    end
  end
  conform "answers requests that were sent ahead",
          old("/1",
              "Connection: keep-alive").first + old("/2", "Connection: keep-alive").first + old("/3").first do |client|
    assert_equal %w[/1 /2 /3], Array.new(3) { seen(client.answer).first["PATH_INFO"] }
    assert_nil client.answer
  end
  conform "changes the version between requests",
          old("/1", "Connection: keep-alive").first + get("/2") + old("/3").first do |client|
    assert_equal %w[HTTP/1.0 HTTP/1.1 HTTP/1.0],
                 Array.new(3) { seen(client.answer).first["SERVER_PROTOCOL"] }
    assert_nil client.answer
  end

  %w[/each /stream].each do |path|
    [[], ["Connection: keep-alive"]].each do |lines|
      conform "ends content of unknown length from #{path} with the connection, #{lines.size}",
              *old(path, *lines) do |client|
        answer = client.answer

        assert_equal [:close, "ab", true], [answer.framing, answer.content, answer.closes?]
      end
    end
  end
  conform "goes on after content of known length", *old("/length", "Connection: keep-alive") do |client|
    answer = client.answer

    assert_equal [:length, "ab"], [answer.framing, answer.content]
    assert_goes_on(client, answer)
  end
  %w[/204 /304].each do |path|
    conform "goes on after #{path}", *old(path, "Connection: keep-alive") do |client|
      assert_goes_on(client, client.answer)
    end
  end
  %w[/ /each /stream /length].each do |path|
    conform "sends no content of #{path} to HEAD", *old(path, method: "HEAD") do |client|
      answer = client.answer("HEAD")

      assert_equal [200, nil], [answer.status, answer["transfer-encoding"]]
      assert_equal "", client.rest
    end
  end
  conform "offers no interim answers", *old("/hints") do |client|
    assert_equal "false", client.answer.content
  end

  body = "0\r\n\r\n"
  refuses "a transfer coding", 400, *old("/", "Transfer-Encoding: chunked", method: "POST", body:)
  refuses "a transfer coding with a host", 400,
          *old("/", "Host: a", "Transfer-Encoding: chunked", method: "POST", body:)
  refuses "a transfer coding with a length", 400,
          *old("/", "Content-Length: 5", "Transfer-Encoding: chunked", method: "POST", body:)
  refuses "a transfer coding that is not known", 400, *old("/", "Transfer-Encoding: gzip", method: "POST", body:)
  refuses "two hosts", 400, *old("/", "Host: a", "Host: b")
  refuses "a host that is none", 400, *old("/", "Host: a b")
  refuses "two lengths", 400, *old("/", "Content-Length: 1", "Content-Length: 2", method: "POST", body: "ab")
  refuses "a bare LF", 400, "GET / HTTP/1.0\n\n"
end
