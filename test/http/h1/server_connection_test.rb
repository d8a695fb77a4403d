# frozen_string_literal: true

require "test_helper"
require "heddle/http"
require_relative "../memory_connection"

class ServerConnectionTest < Minitest::Test
  include Heddle::HTTP

  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  # Serves what the pieces hold; the block answers each request.
  def serve(*pieces, open: false, **limits, &answer)
    answer ||= ->(connection, head, body) { reply(connection, head, body, head.path) }
    connection = MemoryConnection.new(*pieces, open:)
    @refusals = []
    @engine = H1::Engine.new(Configuration.new(**limits), on_refusal: ->(_, refusal) { @refusals << refusal })
    server = H1::ServerConnection.new(connection, @engine)
    server.serve { |head, body| answer.call(server, head, body) }
    connection
  end

  def reply(connection, head, body, text)
    response = H1::Response.new(connection, head, body)
    response.start(200, {}, length: text.bytesize)
    response.write_all([text], text.bytesize)
    response.finish
  end

  def bodies(output) = output.scan(/\r\n\r\n(.*?)(?=HTTP|\z)/m).flatten

  def statuses(output) = output.scan(%r{HTTP/1\.1 (\d+)}).flatten.map(&:to_i)

  def test_a_connection_is_given_back_after_an_answer
    connection = serve(GET, open: true)

    assert_equal [[200], ["/"], [:idle]], [statuses(connection.output), bodies(connection.output), connection.calls]
    assert_equal 1, connection.writes
  end

  def test_a_request_may_come_in_any_pieces
    connection = serve(*GET.chars, open: true)

    assert_equal [[200], [:idle]], [statuses(connection.output), connection.calls]
  end

  def test_pipelined_requests_are_answered_in_order
    connection = serve((1..5).map { |n| GET.sub("/", "/#{n}") }.join, open: true)

    assert_equal %w[/1 /2 /3 /4 /5], bodies(connection.output)
    assert_equal [:idle], connection.calls
  end

  def test_many_pipelined_requests_give_others_their_turn
    rest = (9..20).map { |n| GET.sub("/", "/#{n}") }.join
    connection = serve((1..8).map { |n| GET.sub("/", "/#{n}") }.join + rest, open: true)

    assert_equal 8, bodies(connection.output).size
    assert_equal [[:unread, rest], :idle], connection.calls
  end

  def test_the_end_of_input_without_a_request_closes_quietly
    assert_equal(["", [:close]], serve.then { |one| [one.output, one.calls] })
    assert_equal(["", [:close]], serve("\r\n").then { |one| [one.output, one.calls] })
    assert_equal(["", [:close]], serve(:reset).then { |one| [one.output, one.calls] })
    assert_equal(["", [:close]], serve("GET", :reset).then { |one| [one.output, one.calls] })
    assert_empty @refusals
  end

  def test_a_client_that_half_closes_gets_its_answers
    connection = serve(GET + GET)

    assert_equal [200, 200], statuses(connection.output)
  end

  def test_a_head_that_ends_too_early_is_a_bad_request
    connection = serve("GET / HT")

    assert_equal [400], statuses(connection.output)
    assert_equal 400, @refusals.first.status
  end

  def test_a_slow_head_is_timed_out_by_one_deadline_for_the_whole_head
    connection = serve("GET / ", "HTTP/1.1\r\n", :timeout)

    assert_equal [408], statuses(connection.output)
    first, second, third = connection.timeouts

    assert_operator first, :<=, 10
    assert_operator second, :<, first
    assert_operator third, :<, second
    assert_equal(["", [:close]], serve(:timeout).then { |one| [one.output, one.calls] })
  end

  def test_a_refused_client_gets_the_answer_before_the_connection_closes
    connection = serve("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "more", "and more")

    assert_equal [400], statuses(connection.output)
    assert_includes connection.output, "connection: close\r\n"
    assert_includes connection.output, "400 Bad Request: the Host header is not host[:port].\n"
    assert_equal %i[shutdown_write close], connection.calls
    assert_nil connection.read_partial(1), "what the client sent was not read up"
  end

  def test_lingering_is_bounded
    connection = serve("\0", "a" * 100, "b" * 100, "c" * 100, "d" * 100, linger_limit: 150)

    assert_equal "c" * 100, connection.read_partial(1_000)
    connection = serve("\0", :timeout, "x")

    assert_equal %i[shutdown_write close], connection.calls
  end

  def test_a_small_body_is_complete_before_the_application_is_called
    seen = nil
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nab", "cd", "efGET",
                       open: true) do |server, head, body|
      seen = body&.received? if body
      text = body ? body.read : "none"
      reply(server, head, body, text)
    end

    assert_equal [true, ["abcdef"]], [seen, bodies(connection.output)[0, 1]]
  end

  def test_a_small_chunked_body_is_complete_before_the_application_is_called
    seen = nil
    head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection = serve("#{head}2\r\nab\r\n", "1\r\nc\r", "\n0\r\n\r\n#{GET}",
                       open: true) do |server, head, body|
      seen = body.received? if body
      reply(server, head, body, body ? body.read : "none")
    end

    assert_equal [true, %w[abc none]], [seen, bodies(connection.output)]
  end

  def test_a_chunked_body_that_pauses_is_handed_on_unfinished
    serve("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", :timeout,
          "1\r\nc\r\n0\r\n\r\n") do |server, head, body|
      refute_predicate body, :received?
      assert_equal ["ab", "c", nil], [body.read, body.read, body.read]
      reply(server, head, body, "")
    end
  end

  def test_a_large_body_is_handed_on_at_its_head
    large = "x" * 70_000
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", large, GET,
                       open: true) do |server, head, body|
      next reply(server, head, body, "next") unless body

      refute_predicate body, :received?
      text = "".b
      while (bytes = body.read)
        text << bytes
      end
      reply(server, head, body, text.bytesize.to_s)
    end

    assert_equal %w[70000], bodies(connection.output)
    assert_equal %i[idle], connection.calls
  end

  def test_a_body_that_ends_too_early_is_a_bad_request_and_never_shorter
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc") { flunk }

    assert_equal [400], statuses(connection.output)
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n") { flunk }

    assert_equal [400], statuses(connection.output)
  end

  def test_a_large_body_that_ends_too_early_raises_when_it_is_read
    serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", "abc") do |_, _, body|
      assert_equal "abc", body.read
      assert_raises(Heddle::ClientGone) { body.read }
      false
    end
    serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", "abc", :reset) do |_, _, body|
      assert_equal "abc", body.read
      assert_raises(Heddle::ClientGone) { body.read }
      false
    end
  end

  def test_a_slow_body_is_timed_out
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc", :timeout) { flunk }

    assert_equal [408], statuses(connection.output)
  end

  def test_a_malformed_body_is_a_bad_request_and_a_large_one_too_large
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n") { flunk }

    assert_equal [400], statuses(connection.output)
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n", body_limit: 10) do
      flunk
    end

    assert_equal [413], statuses(connection.output)
  end

  def test_a_client_that_expects_continue_gets_it_when_the_body_is_read
    expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n"
    connection = serve(expecting, "abc", open: true) do |server, head, body|
      assert_equal "", server.connection.output
      assert_equal "abc", body.read
      assert_equal H1::ResponseWriter::CONTINUE, server.connection.output
      reply(server, head, body, "ok")
    end

    assert_equal [[100, 200], [:idle]], [statuses(connection.output), connection.calls]
  end

  def test_no_continue_when_the_body_is_there_or_never_read
    expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    connection = serve("#{expecting}abc", open: true) do |server, head, body|
      assert_equal "abc", body.read
      reply(server, head, body, "ok")
    end

    assert_equal [200], statuses(connection.output)
    connection = serve(expecting, "abc", open: true)

    assert_equal [200], statuses(connection.output)
    assert_includes connection.output, "connection: close\r\n"
    assert_equal %i[shutdown_write close], connection.calls
  end

  def test_what_the_application_leaves_of_a_body_is_not_taken_for_a_request
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nGET / #{GET}", open: true)

    assert_equal [200, 200], statuses(connection.output)
    chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n"
    connection = serve(chunked, :timeout, "0\r\n\r\n#{GET}", open: true)

    assert_equal [200, 200], statuses(connection.output)
    connection = serve("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n", "x" * 70_000, GET)

    assert_equal [200], statuses(connection.output)
    assert_includes connection.output, "connection: close\r\n"
    assert_equal %i[shutdown_write close], connection.calls
  end

  def test_a_client_that_does_not_take_the_answer_is_cut_off
    [IO::TimeoutError, Errno::EPIPE, Errno::ECONNRESET].each do |error|
      connection = MemoryConnection.new(GET)
      connection.fail_writes(error)
      server = H1::ServerConnection.new(connection, H1::Engine.new)
      assert_raises(Heddle::ClientGone) { server.serve { |head, body| reply(server, head, body, "x") } }
      assert_equal [:close], connection.calls
    end
  end

  def test_a_draining_server_ends_connections_with_their_answers
    connection = serve(GET, GET, open: true) do |server, head, body|
      @engine.drain
      reply(server, head, body, "last")
    end

    assert_equal [200], statuses(connection.output)
    assert_includes connection.output, "connection: close\r\n"
    assert_equal [:close], connection.calls
  end
end
