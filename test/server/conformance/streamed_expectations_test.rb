# frozen_string_literal: true

require_relative "support/cases"

# RFC 9110, 10.1.1: Expect, with the option stream_bodies.
class StreamedExpectationsConformanceTest < Minitest::Test
  include Conformance

  served_with body_limit: 1_000, stream_bodies: %w[/streamed /unread /refuses /late]
  at("/unread") { [200, {}, ["unread"]] }
  at("/refuses") { [403, {}, ["no"]] }
  at("/late") do |env|
    [200, {}, ->(stream) { stream << "<" << env["rack.input"].read << ">" && stream.close }]
  end

  expect = "Expect: 100-continue"
  conform "asks when the application reads", post(expect, "Content-Length: 5", path: "/streamed/below") do |client|
    assert_equal 100, client.answer.status
    client.send_at_once("hello")

    assert_seen client.answer, {}, "hello"
  end
  { "/unread" => 200, "/refuses" => 403 }.each do |path, status|
    conform "does not ask for a body that #{path} does not read", post(expect, "Content-Length: 5", path:) do |client|
      answer = client.answer

      assert_equal status, answer.status
      # The body may come or not: the next bytes can't be told apart from a request.
      assert_ended(client, answer)
    end
  end
  conform "does not ask after the answer has begun", post(expect, "Content-Length: 5", path: "/late") do |client|
    client.send_at_once("hello")

    assert_equal "<hello>", client.answer.content
  end
  refuses "a body that is too large rather than to ask for it", 413, post(expect, "Content-Length: 1001", path: "/late")
end
