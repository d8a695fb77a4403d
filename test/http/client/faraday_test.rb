# frozen_string_literal: true

require "test_helper"
require_relative "support/client_case"
require "heddle/http/faraday"

class FaradayTest < ClientCase
  def connection(server, **) = Faraday.new(server.url, **) { |builder| builder.adapter :heddle }

  def test_a_length_that_middleware_has_set_is_the_bodys
    server = serve { |socket, request| socket.write(hello("#{request["content-length"]} #{request.body}")) }

    assert_equal "6 abcdef", connection(server).post("/", "abcdef", "Content-Length" => "3").body
  end

  def test_requests_with_headers_and_bodies
    server = serve { |socket, request| socket.write(hello("#{request.method} #{request["x-a"]} #{request.body}")) }
    faraday = connection(server)

    assert_equal "GET 1 ", faraday.get("/", nil, { "X-A" => "1" }).body
    assert_equal "POST  b", faraday.post("/", "b").body
    in_loop { assert_equal %w[GET GET], Heddle.map(1..2) { faraday.get("/").body.split.first } }
    assert_equal 200, faraday.get("/").status
  end

  def test_the_user_follows_redirects
    server = serve { |socket, _| socket.write("HTTP/1.1 302 F\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n") }

    assert_equal [302, "/x"], connection(server).get("/").then { |response| [response.status, response["location"]] }
  end

  def test_pieces_come_as_they_are_sent
    gate = Thread::Queue.new
    server = serve do |socket, _|
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
      gate.pop # the second half only once the first one has arrived
      socket.write("two")
    end
    pieces = []
    response = connection(server).get("/") do |request|
      request.options.on_data = lambda { |piece, _size, _env|
        pieces << piece
        gate.push(true)
      }
    end

    assert_equal [%w[one two], 200], [pieces, response.status]
  end

  def test_errors_are_faradays
    silent = serve { |socket, _| socket.read }
    assert_raises(Faraday::TimeoutError) { connection(silent, request: { read_timeout: 0.05 }).get("/") }
    assert_raises(Faraday::ConnectionFailed) { connection(serve { |socket, _| socket.close }).post("/", "x") }
    assert_raises(Faraday::ConnectionFailed) { Faraday.new("http://127.0.0.1:1") { |b| b.adapter :heddle }.get("/") }
  end
end
