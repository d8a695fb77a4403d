# frozen_string_literal: true

require_relative "support/cases"

# RFC 9110, 10.1.1: Expect.
class ExpectationsConformanceTest < Minitest::Test
  include Conformance

  served_with body_limit: 1_000
  at("/unread") { [200, {}, ["unread"]] }
  at("/refuses") { [403, {}, ["no"]] }
  at("/twice") { |env| [200, {}, [env["rack.input"].read(2), env["rack.input"].read]] }

  expect = "Expect: 100-continue"
  ["Expect: 100-continue", "Expect: 100-Continue", "expect: 100-CONTINUE", "Expect:100-continue",
   "Expect:  \t100-continue \t"].each_with_index do |line, index|
    { "sized" => [["Content-Length: 5"], "hello"],
      "chunked" => [["Transfer-Encoding: chunked"], "5\r\nhello\r\n0\r\n\r\n"] }.each do |kind, (lines, body)|
      conform "asks for the #{kind} body when the head is complete, spelling #{index}", post(line, *lines) do |client|
        assert_equal 100, client.answer.status
        client.send_at_once(body)
        answer = client.answer

        assert_equal 200, answer.status
        assert_seen answer, {}, "hello"
        assert_goes_on(client, answer)
      end
    end
  end
  conform "asks once however often the application reads", post(expect, "Content-Length: 5", path: "/twice") do |client|
    assert_equal 100, client.answer.status
    client.send_at_once("hello")

    assert_equal "hello", client.answer.content
  end
  conform "asks by a bare 100", post(expect, "Content-Length: 5") do |client|
    answer = client.answer

    assert_equal [100, "Continue", []], [answer.status, answer.reason, answer.fields]
  end

  { "/unread" => 200, "/refuses" => 403 }.each do |path, status|
    conform "asks for a body that #{path} does not read", post(expect, "Content-Length: 5", path:) do |client|
      assert_equal 100, client.answer.status
      client.send_at_once("hello")
      answer = client.answer

      assert_equal status, answer.status
      assert_goes_on(client, answer)
    end
  end
  conform "does not ask where there is no body", get("/", expect) do |client|
    assert_goes_on(client, client.answer)
  end
  conform "does not ask where the length is zero", post(expect, "Content-Length: 0") do |client|
    assert_goes_on(client, client.answer)
  end
  conform "does not need to ask for what is there", post(expect, "Content-Length: 5", body: "hello") do |client|
    answer = client.answer
    answer = client.answer if answer.status == 100 # it may, and does when the body comes byte by byte

    assert_seen answer, {}, "hello"
    answer.closes? ? assert_ended(client, answer) : assert_goes_on(client, answer)
  end
  conform "never asks a client of HTTP 1.0",
          "POST / HTTP/1.0\r\nHost: a\r\n#{expect}\r\nContent-Length: 5\r\n\r\n" do |client|
    assert client.quiet?(0.05)
    client.send_at_once("hello")
    answer = client.answer

    assert_equal 200, answer.status
    assert_seen answer, {}, "hello"
  end
  ["nothing-known", "100-continue, other", "other, 100-continue", "100-continue=1", "100-continued", "100", "200-ok",
   "100-continue;a=b", "\"100-continue\""].each do |value|
    refuses "the expectation #{value}", 417, post("Expect: #{value}", "Content-Length: 5", body: "hello")
    refuses "the expectation #{value} without a body", 417, request("Expect: #{value}")
  end
  refuses "an expectation in a second line", 417, request(expect, "Expect: other")
  refuses "a body that is too large rather than to ask for it", 413, post(expect, "Content-Length: 1001")
  refuses "a length that is none rather than to ask", 400, post(expect, "Content-Length: x")
  refuses "a coding that is not known rather than to ask", 501, post(expect, "Transfer-Encoding: gzip")

  conform "refuses a chunked body that becomes too large after it was asked for",
          post(expect, "Transfer-Encoding: chunked") do |client|
    assert_equal 100, client.answer.status
    client.send_at_once("3e9\r\n#{"x" * 1_001}\r\n0\r\n\r\n")

    assert_rejection 413, client.answer
    assert_nil client.answer
  end
  conform "asks for one body after the other", post(expect, "Content-Length: 1") do |client|
    3.times do |number|
      assert_equal 100, client.answer.status
      client.send_at_once(number.to_s)

      assert_seen client.answer, {}, number.to_s
      client.send_at_once(post(expect, "Content-Length: 1")) if number < 2
    end
  end
end
