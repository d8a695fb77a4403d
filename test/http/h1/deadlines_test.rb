# frozen_string_literal: true

# test: long

require "heddle/rack"
require_relative "../support/http_case"

# How long a client may take to send a request and to receive a response.
class H1DeadlinesTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  # The rounding of deadlines and the coarse clock, and what a busy machine adds.
  LATE = 10.0

  # @return [Float] seconds that the block takes
  def seconds
    started = now
    yield
    now - started
  end

  def assert_within(expected, taken)
    assert_operator taken, :>=, expected - 0.02
    assert_operator taken, :<, expected + LATE
  end

  def test_a_head_that_trickles_in_costs_no_fiber_and_is_cut_off_in_all
    taken = seconds do
      converse(->(_) { flunk }, head_timeout: 0.3) do |conversation|
        "GET /#{"x" * 1_000}".each_char do |byte|
          break if conversation.ended?

          conversation.say(byte)
          started = now
          conversation.await { conversation.ended? || now > started + 0.02 }

          assert_equal [0, []], [conversation.sockets.running, conversation.sockets.serving]
        rescue Errno::EPIPE
          break
        end
        conversation.await_end
      end
    end

    assert_equal [[408], [[408, "the request head was not complete after 0.3 s"]]],
                 [statuses(conversation.output), conversation.rejections]
    assert_within(0.3, taken)
  end

  def test_a_client_that_sends_nothing_or_line_ends_only_is_closed_quietly
    [[[], { idle_timeout: 0.1 }], [["\r\n"], { head_timeout: 0.1 }]].each do |pieces, limits|
      converse(->(_) { flunk }, **limits) do |conversation|
        conversation.say(*pieces)
        conversation.await_end
      end

      assert_equal ["", []], [conversation.output, conversation.rejections]
    end
  end

  def test_an_idle_connection_is_closed_after_the_last_response
    taken = seconds do
      converse(->(exchange) { reply(exchange, "a") }, idle_timeout: 1) do |conversation|
        conversation.say(GET)
        conversation.settle
        conversation.await_end
      end
    end

    assert_equal [200], statuses(conversation.output)
    assert_within(1, taken)
  end

  # A head begins with its first byte, and that of the next request with its own.
  def test_each_head_has_its_own_time
    converse(->(exchange) { reply(exchange, "a") }, head_timeout: 3) do |conversation|
      8.times do
        conversation.say(GET[0, 20])
        started = now
        conversation.await { now > started + 0.4 }
        conversation.say(GET[20..])
        conversation.settle
      end
    end

    assert_equal [200] * 8, statuses(conversation.output)
  end

  def test_a_small_body_is_collected_without_a_fiber
    converse(->(exchange) { reply(exchange, exchange.body.read) }) do |conversation|
      conversation.say(post(6, "a"))
      "bcde".each_char do |byte|
        conversation.say(byte)

        assert_equal [0, 1], [conversation.sockets.running, conversation.sockets.transit]
      end
      conversation.say("f")
      conversation.settle
    end

    assert_equal %w[abcdef], bodies(conversation.output)
  end

  def test_a_small_body_slower_than_the_rate_is_refused
    [post(1_000, "abc"), "#{CHUNKED}3\r\nabc\r\n"].each do |request|
      taken = seconds do
        converse(->(_) { flunk }, body_grace: 0.2, body_rate: 1_000_000, body_pause: 20) do |conversation|
          conversation.say(request)
          conversation.await_end
        end
      end

      assert_equal [[408], [[408, "the body came slower than 1000000 bytes a second, or paused for 60 s"]]],
                   [statuses(conversation.output), conversation.rejections]
      assert_within(0.2, taken)
    end
  end

  def test_a_body_that_keeps_to_the_rate_may_take_longer_than_the_grace
    converse(->(exchange) { reply(exchange, exchange.body.read) }, body_grace: 0.1, body_rate: 1) do |conversation|
      conversation.say(post(10, "abcdefghi"))
      started = now
      conversation.await { now > started + 0.4 }
      conversation.say("j")
      conversation.settle
    end

    assert_equal %w[abcdefghij], bodies(conversation.output)
  end

  # Whether it is in memory, in a file or in chunks.
  def test_body_that_pauses_is_refused_however_fast_it_came
    [post(1_000, "x" * 999), post(400_000, "x" * 399_999), "#{CHUNKED}190\r\n#{"x" * 400}\r\n"].each do |request|
      converse(->(_) { flunk }, body_grace: 0.2, body_rate: 1, body_timeout: 0.2) do |conversation|
        conversation.say(request)
        conversation.await_end
      end

      assert_equal [[408, "the body came slower than 1 bytes a second, or paused for 0.2 s"]], conversation.rejections
    end
  end

  def test_rejection_of_a_body_that_pauses_names_no_rate_where_there_is_none
    [post(1_000, "abc"), post(400_000, "abc"), "#{CHUNKED}3\r\nabc\r\n"].each do |request|
      converse(->(exchange) { exchange.body.read }, body_rate: 0, body_timeout: 0.2) do |conversation|
        conversation.say(request)
        conversation.await_end
      end

      assert_equal [[408, "the body paused for 0.2 s"]], conversation.rejections
    end
  end

  def test_streamed_body_that_pauses_is_refused_however_fast_it_came
    { 1 => "came slower than 1 bytes a second, or paused", 0 => "paused" }.each do |body_rate, expected|
      reason = nil
      answer = lambda do |exchange|
        reason = assert_raises(Heddle::HTTP::BadRequestError) { read_all(exchange.body) }.message
        reply(exchange, "", status: 408)
      end
      converse(answer, stream_bodies: true, body_grace: 0.2, body_rate:, body_timeout: 0.2) do |conversation|
        conversation.say(post(100_000, "x" * 99_999))
        conversation.settle
      end

      assert_equal "the body #{expected} for 0.2 s", reason
    end
  end

  def test_a_streamed_chunked_body_that_never_ends_is_not_served_before_it_pauses
    called = false
    answer = ->(exchange) { (called = true) && reply(exchange, read_all(exchange.body)) }
    converse(answer, body_pause: 2, stream_bodies: true) do |conversation|
      conversation.say(CHUNKED)
      5.times do
        conversation.say("1\r\na\r\n")
        started = now
        conversation.await { now > started + 0.05 }

        refute called
      end
      conversation.await { called }
      conversation.say("0\r\n\r\n")
      conversation.settle
    end

    assert_equal %w[aaaaa], bodies(conversation.output)
  end

  def test_a_body_that_the_application_left_and_that_does_not_come_ends_the_connection
    taken = seconds do
      answer = ->(exchange) { reply(exchange, "a") }
      converse(answer, stream_bodies: true, body_pause: 0.001, body_grace: 0.2, body_rate: 1_000,
                       linger_timeout: 0.1) do |conversation|
        conversation.say("#{CHUNKED}1\r\na\r\n")
        conversation.await_end
      end
    end

    assert_equal [200], statuses(conversation.output)
    assert_empty conversation.rejections
    assert_operator taken, :<, 0.2 + LATE
  end

  # The runner is free by then: only the connection's record knows what is left.
  def test_a_client_that_reads_nothing_of_a_response_is_cut_off_after_the_runner_has_left
    answer = ->(exchange) { Heddle::Rack.respond(exchange, [200, {}, ["x" * 2_000_000]], false) }
    taken = seconds do
      converse(answer, reads: false, write_timeout: 1) do |conversation|
        conversation.say(GET)
        conversation.await { conversation.sockets.running == 0 }

        assert_predicate conversation, :open?
        conversation.await { !conversation.open? }
        conversation.read
        conversation.await_end
      end
    end

    assert_within(1, taken)
    assert_operator conversation.output.size, :<, 2_000_000
  end

  def test_client_below_the_minimum_rate_is_cut_off
    answered = false
    answer = ->(exchange) { answered = Heddle::Rack.respond(exchange, [200, {}, ["x" * 2_000_000]], false) }
    look = ->(rate) { conversation.sockets.cut_slow_readers(1 << 40, rate, 0.05) }
    converse(answer, reads: false) do |conversation|
      conversation.say(GET)
      conversation.await { answered && conversation.sockets.running == 0 }

      assert_equal 0, look.call(1_000_000), "the first look"
      started = now
      conversation.await { now > started + 0.1 }

      assert_equal 0, look.call(0)
      conversation.await { now > started + 0.2 }

      assert_equal 1, look.call(1_000_000)
      conversation.await { !conversation.open? }
    end
  end

  def test_a_client_that_reads_slowly_gets_all_of_it
    answer = ->(exchange) { Heddle::Rack.respond(exchange, [200, {}, ["x" * 1_000_000]], false) }
    converse(answer, reads: false, write_timeout: 2) do |conversation|
      conversation.say(GET)
      until conversation.output.end_with?("x") && conversation.output.count("x") == 1_000_000
        conversation.output << conversation.client.readpartial(50_000)
        started = now
        conversation.await { now > started + 0.12 }
      end

      assert_predicate conversation, :open?
    end
  end

  def test_a_write_to_a_client_that_reads_nothing_times_out
    error = nil
    taken = seconds do
      answer = ->(exchange) { error = assert_raises(Heddle::ClientGoneError) { loop { exchange.write("x" * 50_000) } } }
      converse(answer, reads: false, write_timeout: 0.2) do |conversation|
        conversation.say(GET)
        conversation.await { error }

        refute_predicate conversation, :open?
      end
    end

    assert_equal "the client read nothing of the response for 0.2 s", error.message
    assert_within(0.2, taken)
  end

  # An earlier deadline takes the place of a later one.
  def test_a_nearer_deadline_counts_though_a_later_one_was_set_before
    taken = seconds do
      converse(->(_) { flunk }, idle_timeout: 1_000, head_timeout: 0.15) do |conversation|
        conversation.settle
        conversation.say("G")
        conversation.await_end
      end
    end

    assert_within(0.15, taken)
  end

  def test_the_longest_times_that_are_allowed_are_times
    names = %i[head_timeout idle_timeout body_grace body_pause write_timeout linger_timeout]
    limits = names.to_h { |name| [name, 86_400] }
    [limits, { **limits, body_rate: 0 }].each do |forever|
      output = serve(post(4, "ab"), "cd", CHUNKED, "1\r\na\r\n0\r\n\r\nG", "E", open: false, **forever) do |exchange|
        reply(exchange, exchange.body.read)
      end

      assert_equal [200, 200, 400], statuses(output)
    end
  end
end

# The same where there is no epoll.
class H1DeadlinesWithSelectorSetTest < H1DeadlinesTest
  def set = :selector
end
