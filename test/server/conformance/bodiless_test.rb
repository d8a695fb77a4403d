# frozen_string_literal: true

require_relative "support/cases"
require "tempfile"

# RFC 9110, 6.4.1, 8.6 and 15, RFC 9112, 6.3: responses that have no content, even if the application gives one.
class BodilessConformanceTest < Minitest::Test
  include Conformance

  # A body that has a file.
  class Page
    FILE = Tempfile.create("heddle").tap { |file| file.write("a file") && file.close }
    Minitest.after_run { File.unlink(FILE.path) }

    def to_path = FILE.path
    def each = yield("a file")
  end

  bodies = {
    "array" => -> { ["hello", "!"] }, "each" => -> { %w[hello !].each },
    "stream" => -> { ->(stream) { stream << "hello" && stream.close } }, "file" => -> { Page.new }, "empty" => -> { [] }
  }
  statuses = [200, 201, 202, 203, 206, 301, 302, 400, 404, 410, 418, 500, 503, 599]
  bodies.each do |kind, body|
    (statuses + [204, 205, 304]).each do |status|
      at("/#{status}/#{kind}") { [status, {}, body.call] }
      conform "sends no content to HEAD for #{status} from #{kind}",
              request(line: "HEAD /#{status}/#{kind} HTTP/1.1") do |client|
        answer = client.answer("HEAD")

        assert_equal status, answer.status
        assert_goes_on(client, answer)
      end
    end
    [204, 205, 304].each do |status|
      conform "sends no content with #{status} from #{kind}", get("/#{status}/#{kind}") do |client|
        answer = client.answer

        assert_equal [status, ""], [answer.status, answer.content]
        assert_goes_on(client, answer)
      end
    end
    statuses.each do |status|
      conform "sends content with #{status} from #{kind}", get("/#{status}/#{kind}") do |client|
        answer = client.answer
        expected = { "array" => "hello!", "each" => "hello!", "stream" => "hello", "file" => "a file", "empty" => "" }

        assert_equal [status, expected.fetch(kind)], [answer.status, answer.content]
        assert_goes_on(client, answer)
      end
    end
  end

  at("/length") { [200, { "content-length" => "1234" }, []] }
  conform "tells HEAD the length of what GET would get", request(line: "HEAD /length HTTP/1.1") do |client|
    assert_equal "1234", client.answer("HEAD")["content-length"]
  end
  conform "tells HEAD nothing wrong about an array", request(line: "HEAD /200/array HTTP/1.1") do |client|
    assert_includes [nil, "6"], client.answer("HEAD")["content-length"]
  end
  at("/etag") { [304, { "etag" => "\"a\"" }, []] }
  conform "passes the fields of a 304", get("/etag") do |client|
    answer = client.answer

    assert_equal ["\"a\"", nil], [answer["etag"], answer["transfer-encoding"]]
  end
  conform "sends the zero that a 205 needs, or a last chunk", get("/205/array") do |client|
    answer = client.answer

    assert(answer["content-length"] == "0" || answer.framing == :chunked)
  end
  conform "answers the next request after HEAD at once",
          request(line: "HEAD /200/stream HTTP/1.1") + request(line: "HEAD /200/each HTTP/1.1") + PROBE do |client|
    2.times { assert_equal 200, client.answer("HEAD").status }

    assert_seen client.answer, { "PATH_INFO" => "/probe" }, ""
    assert_nil client.answer
  end

  at("/fails") { raise "on purpose" }
  conform "sends an error without content to HEAD", request(line: "HEAD /fails HTTP/1.1"),
          errors: /on purpose/ do |client|
    answer = client.answer("HEAD")

    assert_rejection 500, answer, content: false
    assert_equal "", client.rest
  end
  conform "sends a rejection to HEAD of which it knows the method",
          "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: other\r\n\r\n" do |client|
    # Whether the error has content is free here: the connection ends with it.
    answer = client.answer("HEAD")

    assert_equal [417, true], [answer.status, answer.closes?]
  end
end
