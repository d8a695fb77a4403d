# frozen_string_literal: true

# test: sanitize
# test: smoke

require_relative "../support/http_case"

# From the bytes of requests to those of responses, over a pair of sockets.
class H1ExchangeTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  CONTINUE = Heddle::HTTP::H1::ResponseWriter::CONTINUE
  EXPECTING = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n"

  def test_a_connection_is_kept_after_a_response_that_left_in_one_write
    output = serve(GET, open: true, kind: :packets)

    assert_equal [[200], ["/"], true, 1], [statuses(output), bodies(output), kept?, conversation.reads.size]
  end

  def test_a_request_may_come_in_any_pieces
    output = serve(*GET.chars, open: true)

    assert_equal [[200], true, 1], [statuses(output), kept?, conversation.engine.requests]
  end

  def test_pipelined_requests_are_answered_in_order
    output = serve((1..5).map { |n| get("/#{n}") }.join, open: true)

    assert_equal [%w[/1 /2 /3 /4 /5], true], [bodies(output), kept?]
  end

  def test_the_end_of_input_without_a_request_closes_quietly
    assert_equal "", serve
    assert_equal "", serve("\r\n")
    assert_empty conversation.rejections
    [[], %w[GET]].each do |pieces|
      converse(->(_) { flunk }, kind: :tcp) do |conversation|
        conversation.say(*pieces)
        conversation.vanish
        conversation.await { !conversation.open? }
      end

      assert_empty conversation.rejections
    end
  end

  def test_a_client_that_half_closes_gets_its_answers
    assert_equal [200, 200], statuses(serve(GET + GET))
    assert_equal [200, 200], statuses(serve(GET, GET))
  end

  def test_a_head_that_ends_too_early_is_a_bad_request
    output = serve("GET / HT")

    assert_equal [400], statuses(output)
    assert_equal [[400, "the request ended before its head was complete"]], conversation.rejections
  end

  def test_a_refused_client_gets_the_response_before_the_connection_closes
    output = serve("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "more", "and more")

    assert_equal [400], statuses(output)
    assert_includes output, "connection: close\r\n"
    assert_includes output, "400 Bad Request: the Host header is not host[:port].\n"
    assert_equal [400], conversation.rejections.map(&:first)
  end

  def test_a_refused_head_request_gets_no_content
    ["HEAD / HTTP/1.1\r\n\r\n", "\r\nHEAD / HTTP/1.1\r\nHost: a b\r\n\r\n", "HEAD / HTTP/1.1\r\nA b\r\n\r\n",
     "HEAD / HTTP/1.1\r\nHo", "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"].each do |head|
      [[head], head.chars].each do |pieces|
        output = serve(*pieces)

        assert_equal [[400], [""]], [statuses(output), bodies(output)], head
        assert_match(/^content-length: \d\d\r$/, output)
      end
    end
    refute_equal [""], bodies(serve("\r\nGET / HTTP/1.1\r\n\r\n"))
  end

  def test_a_small_body_is_complete_before_the_application_is_called
    seen = []
    output = serve(post(6, "ab"), "cd", "efGET", open: true) do |exchange|
      seen << exchange.received? << exchange.body.read << exchange.body.read
      reply(exchange, "ok")
    end

    assert_equal [[true, "abcdef", nil], [200, 400]], [seen, statuses(output)]
  end

  def test_a_small_chunked_body_is_complete_before_the_application_is_called
    seen = nil
    output = serve("#{CHUNKED}2\r\nab\r\n", "1\r\nc\r", "\n0\r\n\r\n#{GET}", open: true) do |exchange|
      seen = exchange.received? if exchange.body
      reply(exchange, exchange.body ? exchange.body.read : "none")
    end

    assert_equal [true, %w[abc none], true], [seen, bodies(output), kept?]
  end

  def test_a_streamed_chunked_body_that_pauses_is_handed_on_unfinished
    called = false
    answer = lambda do |exchange|
      refute_predicate exchange, :received?
      called = true

      assert_equal ["ab", "c", nil], Array.new(3) { exchange.body.read }
      reply(exchange, "ok")
    end
    output = converse(answer, body_pause: 0.01, stream_bodies: true) do |conversation|
      conversation.say("#{CHUNKED}2\r\nab\r\n")
      conversation.await { called }
      conversation.say("1\r\nc\r\n0\r\n\r\n")
      conversation.settle.output
    end

    assert_equal %w[ok], bodies(output)
  end

  def test_a_large_streamed_body_is_handed_on_at_its_head
    large = "x" * 70_000
    output = serve(post(70_000), large, GET, open: true, stream_bodies: true) do |exchange|
      next reply(exchange, "next") unless exchange.body

      refute_predicate exchange, :received?
      reply(exchange, read_all(exchange.body).bytesize.to_s)
    end

    assert_equal [%w[70000 next], true], [bodies(output), kept?]
  end

  def test_a_body_that_ends_too_early_is_a_bad_request_and_never_shorter
    assert_equal([400], statuses(serve(post(6, "abc")) { flunk }))
    assert_equal([400], statuses(serve("#{CHUNKED}3\r\nabc\r\n") { flunk }))
    assert_equal [[400, "the request's body ended before it was complete"]], conversation.rejections
  end

  def test_a_large_streamed_body_that_ends_too_early_raises_when_it_is_read
    serve(post(70_000), "abc", stream_bodies: true) do |exchange|
      assert_equal "abc", exchange.body.read
      assert_raises(Heddle::ClientGoneError) { exchange.body.read }
    end
    seen = nil
    answer = lambda do |exchange|
      seen = exchange.body.read
      assert_raises(Heddle::ClientGoneError) { exchange.body.read }
    end
    converse(answer, kind: :tcp, stream_bodies: true) do |conversation|
      conversation.say(post(70_000), "abc")
      conversation.await { seen }
      conversation.vanish
      conversation.await { !conversation.open? }
    end

    assert_equal "abc", seen
  end

  def test_a_malformed_body_is_a_bad_request_and_a_large_one_too_large
    assert_equal([400], statuses(serve("#{CHUNKED}x\r\n") { flunk }))
    assert_equal([413], statuses(serve("#{CHUNKED}b\r\n", body_limit: 10) { flunk }))
    assert_equal([413], statuses(serve(post(11), body_limit: 10) { flunk }))
  end

  # The bytes with the fault are still there when the response is sent: read from the trailer on, the data of the chunk
  # would be the end of the body, and a request.
  def test_a_malformed_streamed_body_ends_the_connection_where_the_application_answers
    data = "\r\n#{get("/hidden")}"
    begun = false
    answer = lambda do |exchange|
      exchange.body.read
      begun = true
      2.times { assert_raises(Heddle::HTTP::BadRequestError) { read_all(exchange.body) } }
      reply(exchange, exchange.target)
    end
    converse(answer, body_pause: 0.01, stream_bodies: true) do |conversation|
      conversation.say("#{CHUNKED}1\r\na\r\n")
      conversation.await { begun }
      conversation.say("#{data.bytesize.to_s(16)}\r\n#{data}\r\n0\r\nA: \x01")
      conversation.settle
    end

    assert_equal [%w[/], false], [bodies(conversation.output), kept?]
    assert_includes conversation.output, "connection: close\r\n"
  end

  def test_a_client_that_expects_continue_gets_it_when_a_streamed_body_is_read
    body = nil
    answer = lambda do |exchange|
      assert_predicate exchange, :expects?
      assert_equal "", conversation.output
      body = exchange.body.read
      reply(exchange, "ok")
    end
    converse(answer, stream_bodies: true) do |conversation|
      conversation.say(EXPECTING)
      conversation.await { conversation.output == CONTINUE }
      conversation.say("abc")
      conversation.settle
    end

    assert_equal ["abc", [100, 200], true], [body, statuses(conversation.output), kept?]
  end

  def test_no_continue_when_the_body_is_there_or_a_streamed_one_is_never_read
    output = serve("#{EXPECTING}abc", open: true) do |exchange|
      assert_equal "abc", exchange.body.read
      reply(exchange, "ok")
    end

    assert_equal [[200], true], [statuses(output), kept?]
    output = serve(EXPECTING, "abc", open: true, stream_bodies: true)

    assert_equal [[200], false], [statuses(output), kept?]
    assert_includes output, "connection: close\r\n"
  end

  def test_an_unread_body_is_not_parsed_as_a_request
    output = serve("#{post(6)}GET / #{GET}", open: true)

    assert_equal [[200, 200], true], [statuses(output), kept?]
    answered = 0
    answer = ->(exchange) { (answered += 1) && reply(exchange, "") }
    converse(answer, body_pause: 0.01, stream_bodies: true) do |conversation|
      conversation.say("#{CHUNKED}3\r\nGET\r\n")
      conversation.await { answered == 1 }
      conversation.say("0\r\n\r\n#{GET}")
      conversation.settle
    end

    assert_equal [[200, 200], true], [statuses(conversation.output), kept?]
    output = serve(post(70_000), "x" * 70_000, GET, stream_bodies: true)

    assert_equal [200], statuses(output)
    assert_includes output, "connection: close\r\n"
  end

  def test_a_write_to_a_client_that_has_left_raises
    %i[stream tcp].each do |kind|
      error = nil
      answer = lambda do |exchange|
        conversation.vanish
        error = assert_raises(Heddle::ClientGoneError) { loop { exchange.write("x" * 10_000) && Fiber.scheduler.yield } }
      end
      converse(answer, kind:) do |conversation|
        conversation.say(GET)
        conversation.await { !conversation.open? }
      end

      assert_match(/the client left before it had the response/, error.message)
    end
  end

  def test_a_draining_server_ends_connections_with_their_answers
    output = serve(GET + GET, open: true) do |exchange|
      exchange.engine.drain
      reply(exchange, "last")
    end

    assert_equal [[200], false], [statuses(output), kept?]
    assert_includes output, "connection: close\r\n"
    assert_predicate conversation.engine, :draining?
  end
end

# The same where there is no epoll.
class H1ExchangeWithSelectorSetTest < H1ExchangeTest
  def set = :selector
end
