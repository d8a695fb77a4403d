# frozen_string_literal: true

# test: sanitize

require_relative "../support/http_case"

# A client that still sends when it has been refused gets the response, not a reset; but only for a bounded time.
class H1LingeringTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  REFUSED = "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"

  def test_input_from_a_rejected_client_is_read_and_discarded
    converse(->(_) { flunk }) do |conversation|
      conversation.say(REFUSED)
      conversation.await_end

      assert_equal [[400], true, 0], [statuses(conversation.output), conversation.open?, conversation.sockets.running]
      20.times { conversation.say("x" * 100_000) }

      assert_predicate conversation, :open?
      conversation.hang_up
      conversation.await { !conversation.open? }
    end
  end

  # Faster than the server reads: nothing tells again what was left over.
  def test_a_client_that_sends_all_at_once_is_read_to_the_limit
    converse(->(_) { flunk }, kind: :tcp, linger_limit: 8_000_000) do |conversation|
      writer = Fiber.schedule { conversation.client.write("#{REFUSED}#{"x" * 7_900_000}") }
      conversation.await { !writer.alive? }
      conversation.await_end
      conversation.hang_up
      conversation.await { !conversation.open? }
    end

    assert_equal [400], statuses(conversation.output)
  end

  def test_rejected_connect_has_content_after_a_head_request_in_pieces
    output = converse(->(exchange) { reply(exchange, "") }) do |conversation|
      conversation.say("HEAD / HTTP/1.1\r\n", "Host: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")
      conversation.await_end
      conversation.output
    end

    assert_equal [200, 501], statuses(output)
    assert_includes output, "501 Not Implemented: this server"
  end

  def test_lingering_ends_with_its_limit
    converse(->(_) { flunk }, linger_limit: 150_000) do |conversation|
      conversation.say(REFUSED, "x" * 100_000)
      assert_predicate conversation, :open?
      conversation.say("x" * 50_000)
      conversation.await { !conversation.open? }
    end
  end

  def test_lingering_ends_with_its_time_however_much_comes
    started = now
    converse(->(_) { flunk }, linger_timeout: 0.2) do |conversation|
      conversation.say(REFUSED)
      conversation.await { conversation.open? ? !conversation.client.write("x") : true }
    rescue Errno::EPIPE
      conversation.await { !conversation.open? }
    end

    assert_operator now - started, :>=, 0.18
    assert_operator now - started, :<, 10
  end

  def test_without_a_time_to_linger_the_connection_closes_at_once
    converse(->(_) { flunk }, linger_timeout: 0) do |conversation|
      conversation.say(REFUSED)
      conversation.await { !conversation.open? }
      conversation.await_end
    end

    assert_equal [400], statuses(conversation.output)
  end

  # Closing with unread input would reset the connection, and the answer could be lost (RFC 9112, 9.6).
  def test_a_last_response_survives_what_came_behind_the_request
    ["x" * 100_000, GET].each do |behind|
      converse(->(exchange) { reply(exchange, "a") }, kind: :tcp) do |conversation|
        conversation.client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n#{behind}")
        conversation.await_end
      end

      assert_equal %w[a], bodies(conversation.output)
    end
  end

  # It came when the answer was made: the set has not told of it yet.
  def test_the_last_response_survives_what_came_meanwhile
    %i[epoll selector].each do |set|
      next if set == :epoll && !RUBY_PLATFORM.include?("linux")

      answer = lambda do |exchange|
        conversation.client.write("more")
        reply(exchange, "a")
      end
      converse(answer, kind: :tcp, set:) do |conversation|
        conversation.client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        conversation.await_end

        assert_predicate conversation, :open?, "it lingers"
      end

      assert_equal %w[a], bodies(conversation.output)
    end
  end

  def test_a_malformed_rest_of_an_unread_body_does_not_prevent_the_response
    answer = ->(exchange) { reply(exchange, "a") }
    converse(answer, body_pause: 0.001, stream_bodies: true, kind: :tcp) do |conversation|
      conversation.client.write("#{CHUNKED}1\r\na\r\n")
      conversation.await { bodies(conversation.output) == %w[a] }
      conversation.client.write("x\r\n#{"y" * 10_000}")
      conversation.await_end

      assert_predicate conversation, :open?, "it lingers"
    end

    assert_empty conversation.rejections
  end

  def test_a_rejection_by_the_application_lingers_too
    converse(->(exchange) { assert exchange.reject(413, "too much") }, stream_bodies: true) do |conversation|
      conversation.say(post(100_000))
      conversation.await_end
      conversation.say("x" * 100_000)
      assert_predicate conversation, :open?
      conversation.hang_up
      conversation.await { !conversation.open? }
    end

    assert_equal [413], statuses(conversation.output)
  end
end

# The same where there is no epoll.
class H1LingeringWithSelectorSetTest < H1LingeringTest
  def set = :selector
end
