# frozen_string_literal: true

# test: sanitize

require "heddle/rack"
require_relative "../support/http_case"

# Requests that arrive before the responses to earlier ones are sent.
class H1PipeliningTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  # Requests of a connection in one turn, where no other client is there.
  TURN = 16
  LARGE = ("x" * 2_000_000).freeze

  # Gives the connection back at once, however much is left to be sent.
  def answer_large(exchange) = Heddle::Rack.respond(exchange, [200, {}, [LARGE]], false)

  def test_answers_to_requests_that_came_together_leave_in_one_write
    together = Array.new(50).any? do # not where a request takes over a millisecond
      output = serve((1..5).map { |n| get("/#{n}") }.join, open: true, kind: :packets)

      assert_equal %w[/1 /2 /3 /4 /5], bodies(output)
      conversation.reads.one?
    end

    assert together, "no output came in one piece"
  end

  def test_after_a_turn_the_answers_leave_and_others_have_theirs
    count = (3 * TURN) + 1
    order = []
    answer = lambda do |exchange|
      order << exchange.target
      reply(exchange, exchange.target)
    end
    converse(answer, kind: :packets) do |conversation|
      conversation.say(*(1..count).map { |n| get("/#{n}") }.join.scan(/.{1,8000}/m))
      conversation.settle
    end
    expected = (1..count).map { |n| "/#{n}" }

    assert_equal [expected, expected], [order, bodies(conversation.output)]
    sizes = conversation.reads.map { |read| statuses(read).size }

    assert_operator sizes.size, :>, 1
    assert_operator sizes.max, :<=, TURN
  end

  # One connection has a hundred requests at hand, the other one sends its next request with each answer.
  def test_a_connection_that_pipelines_gets_as_many_turns_as_one_that_does_not
    order = []
    scheduled do |scheduler|
      @conversation = conversation = Heddle::TestHelpers::Conversation.new(scheduler, set:) do |exchange|
        order << exchange.target
        @other.write(get("/one")) if exchange.target == "/one"
        reply(exchange, "")
      end
      mine, @other = UNIXSocket.pair
      conversation.sockets.adopt(mine)
      mine.close
      @other.write(get("/one"))
      conversation.await { order.any? }
      conversation.client.write(get("/many") * 100)
      conversation.await { order.count("/many") == 100 }
    ensure
      conversation.close
      @other.close
    end
    turns = order.drop(order.index("/many")).chunk_while { |before, after| before == after }.map(&:size)

    assert_equal [1], turns.uniq
  end

  def test_answers_leave_though_the_application_of_the_next_request_waits
    go = false
    answer = lambda do |exchange|
      conversation.await { go } if exchange.target == "/slow"
      reply(exchange, exchange.target)
    end
    converse(answer) do |conversation|
      conversation.say(get("/1") + get("/2") + get("/slow") + get("/3"))
      conversation.await { bodies(conversation.output) == %w[/1 /2] }
      go = true
      conversation.settle
    end

    assert_equal %w[/1 /2 /slow /3], bodies(conversation.output)
  end

  def test_an_answer_leaves_though_the_next_request_comes_slowly
    converse(->(exchange) { reply(exchange, exchange.target) }) do |conversation|
      conversation.say("#{get("/1")}GET /2 HT")
      conversation.await { bodies(conversation.output) == %w[/1] }
      conversation.say("TP/1.1\r\nHost: a\r\n\r\n#{post(4, "ab")}")
      conversation.await { bodies(conversation.output) == %w[/1 /2] }
      conversation.say("cd")
      conversation.settle
    end

    assert_equal %w[/1 /2 /], bodies(conversation.output)
  end

  # More than the kernel takes at once: what is left has to go out while the server waits for input.
  def test_a_large_answer_continues_while_the_next_request_comes
    { post(4, "ab") => "cd", "#{CHUNKED}1\r\na\r\n" => "0\r\n\r\n", "GET /2 HT" => "TP/1.1\r\nHost: a\r\n\r\n" }
      .each do |start, rest|
      converse(method(:answer_large), reads: false, body_pause: 20) do |conversation|
        conversation.say(GET + start)
        conversation.read
        conversation.await { conversation.output.include?(LARGE) }
        conversation.client.write(rest)
        conversation.settle

        assert_equal [[200, 200], true], [statuses(conversation.output), !conversation.ended?]
      end
    end
  end

  # The same after a body that the application has left, which the client ends before it reads the answer.
  def test_a_large_response_is_completed_after_an_unread_body
    answered = 0
    answer = ->(exchange) { answer_large(exchange) && answered += 1 }
    converse(answer, reads: false, body_pause: 0.001, stream_bodies: true) do |conversation|
      conversation.say("#{CHUNKED}1\r\na\r\n")
      conversation.await { answered == 1 }
      conversation.say("0\r\n\r\n")
      conversation.read
      conversation.await { conversation.output.include?(LARGE) }
      conversation.say(GET)
      conversation.settle
    end

    assert_equal [200, 200], statuses(conversation.output)
  end

  def test_a_rejection_comes_after_the_answers_before_it
    output = serve("#{get("/1")}#{get("/2")}no request\r\n\r\n#{get("/3")}", open: true)

    assert_equal [[200, 200, 400], %w[/1 /2], false], [statuses(output), bodies(output).first(2), kept?]
    assert_equal [400], conversation.rejections.map(&:first)
    converse(method(:answer_large), reads: false) do |conversation|
      conversation.say("#{GET}no request\r\n\r\n")
      conversation.read
      conversation.await_end
    end

    assert_equal [[200, 400], LARGE], [statuses(conversation.output), bodies(conversation.output).first]
  end

  def test_the_end_of_input_comes_after_all_answers
    assert_equal [200] * 40, statuses(serve(GET * 40))
    output = serve((GET * 3) + GET[0, 10])

    assert_equal [200, 200, 200, 400], statuses(output)
  end

  def test_a_streamed_answer_in_between_keeps_the_order
    output = serve(get("/1") + get("/each") + get("/3"), open: true) do |exchange|
      next reply(exchange, exchange.target) unless exchange.target == "/each"

      exchange.response.start(200, {})
      3.times do |n|
        exchange.response.write(n.to_s)
        Fiber.scheduler.yield
      end
      exchange.response.finish
    end

    assert_equal ["/1", "1\r\n0\r\n1\r\n1\r\n1\r\n2\r\n0\r\n\r\n", "/3"], bodies(output)
  end

  def test_requests_after_connection_close_are_not_served
    output = serve("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n#{get("/2")}", open: true)

    assert_equal [%w[/1], 1, false], [bodies(output), conversation.engine.requests, kept?]
  end
end

# The same where there is no epoll.
class H1PipeliningWithSelectorSetTest < H1PipeliningTest
  def set = :selector
end
