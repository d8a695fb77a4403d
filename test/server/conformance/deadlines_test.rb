# frozen_string_literal: true

require_relative "support/cases"

# A head and a body that stop half-way are answered with 408, and an idle connection is closed without a response (RFC
# 9110, 15.5.9; RFC 9112, 9.5).
class DeadlinesConformanceTest < Minitest::Test
  include Conformance

  # A connection that sends nothing within head_timeout ends without words: the first bytes have to be there before.
  served_with head_timeout: 0.5, body_grace: 0.1, idle_timeout: 0.1

  ["G", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a", "GET / HTTP/1.1\r\nHost: a\r\n",
   "GET / HTTP/1.1\r\nHost: a\r\n\r"].each_with_index do |bytes, index|
    refuses "a head that stays incomplete, #{index}", 408, bytes, bytewise: false
    refuses "a head that stays incomplete after a request, #{index}", 408, request + bytes, before: 1, bytewise: false
  end
  ["Content-Length: 5", "Transfer-Encoding: chunked"].each do |line|
    refuses "a body that never comes, #{line}", 408, post(line), called: true, bytewise: false
  end
  refuses "a body that stays incomplete", 408, post("Content-Length: 5", body: "hell"), called: true, bytewise: false
  refuses "a chunked body without its last chunk", 408, chunked("5\r\nhello\r\n"), called: true, bytewise: false
  refuses "a chunked body that stops in a size", 408, chunked("5"), called: true, bytewise: false
  refuses "a chunked body that stops in a trailer", 408, chunked("0\r\nX-A: b\r\n"), called: true, bytewise: false

  conform "ends an idle connection without words" do |client|
    assert_nil client.answer
  end
  conform "ends a connection that sent an empty line without words", "\r\n", bytewise: false do |client|
    assert_nil client.answer
  end
  conform "ends a connection that idles after an answer without words", request, bytewise: false do |client|
    assert_equal 200, client.answer.status
    assert_nil client.answer
  end
end
