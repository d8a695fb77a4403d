# frozen_string_literal: true

# test: sanitize

require_relative "support/conversations"

# Malformed requests over HTTP/2 are reset, and reported as HTTP/1.1 reports a 400.
class H2MalformedRequestsTest < Minitest::Test
  include H2Conversations

  POST = "HEADERS eh 1 post content-length=4"
  # The frames, and the reported reason.
  {
    a_repeated_pseudo_header: ["HEADERS es+eh 1 get :path=/", "a pseudo-header field is unknown, occurs twice"],
    an_uppercase_name: ["HEADERS es+eh 1 get X-A=b", "a field's name is empty, or has uppercase letters"],
    a_value_with_white_space: ['HEADERS es+eh 1 get 0003 "x-a" 02 " b"', "a field's value has control characters"],
    a_field_about_the_connection: ["HEADERS es+eh 1 get upgrade=x", "a field such as Connection or Upgrade"],
    no_method: ["HEADERS es+eh 1 848641096c6f63616c686f7374", "the :method is missing"],
    no_path: ["HEADERS es+eh 1 :method=GET :scheme=http :authority=a", "a pseudo-header field is missing"],
    a_scheme_that_is_none: ["HEADERS es+eh 1 :method=GET :scheme=1 :authority=a :path=/", "the :scheme is not valid"],
    another_host: ["HEADERS es+eh 1 get host=other", ":authority and Host are missing, differ"],
    a_path_that_is_none: ["HEADERS es+eh 1 :method=GET :scheme=http :authority=a :path=b", "the :path is not valid"],
    a_length_without_a_body: ["HEADERS es+eh 1 post content-length=4", "the Content-Length is not a number, or"],
    a_dependency_on_itself: ["HEADERS es+eh+pri 1 #1 ff get", "the stream depends on itself"],
    a_body_that_is_too_short: [POST, 'DATA es 1 "abc"', "DATA is shorter than the content-length"],
    a_body_that_is_too_long: [POST, 'DATA es 1 "abcde"', "DATA exceeds the content-length"],
    malformed_trailers: ["HEADERS eh 1 post", "HEADERS es+eh 1 :path=/", "a pseudo-header field is unknown"],
    trailers_before_the_end: ["HEADERS eh 1 post", "HEADERS eh 1 a=b", "trailers don't end the request"]
  }.each do |name, (*frames, reason)|
    define_method("test_a_request_with_#{name}_is_reset_and_reported") do
      assert_equal [["PROTOCOL_ERROR", 1]], errors_for(*frames)
      assert_equal [400], conversation.rejections.map(&:first)
      assert_operator conversation.rejections.first.last, :start_with?, reason
    end
  end

  def test_trailers_beyond_the_limit_are_reported_by_their_status
    assert_equal [[431, "the trailers are too many or too large"]],
                 rejections_of("HEADERS eh 1 post", "HEADERS es+eh 1 a=b c=d", header_count: 1)
  end

  def test_a_request_that_is_already_rejected_is_reported_once
    rejections = rejections_of("HEADERS eh 1 post content-length=9", 'DATA es 1 "abc"', body_limit: 8)

    assert_equal [413], rejections.map(&:first)
  end

  def test_a_request_that_the_application_has_got_is_not_reported
    begun = false
    read = ->(exchange) { (begun = true) && reply(exchange, read_all(exchange.body)) }
    converse(read, stream_bodies: true, body_buffer: 0) do |conversation|
      conversation.say(frames(POST))
      conversation.await { begun }
      conversation.say(H2Conversations::Frames.new.send_frame('DATA es 1 "abc"'))
      conversation.await { conversation.raised.any? }

      assert_equal [Heddle::ClientGoneError], conversation.raised.map(&:class)
      assert_empty conversation.rejections
    end
  end

  # The response waits for the client's window, and the application has ended.
  def test_a_request_that_the_application_has_answered_is_not_reported
    answered = false
    answer = lambda do |exchange|
      reply(exchange, "early")
      answered = true
    end
    converse(answer, stream_bodies: true, body_buffer: 0) do |conversation|
      conversation.say(frames("SETTINGS - 0 4:0", POST))
      conversation.await { answered }
      conversation.say(H2Conversations::Frames.new.send_frame('DATA - 1 "abcde"'))
      conversation.await { frames_of(conversation.output).any?(&:error) }

      assert_empty conversation.rejections
    end
  end
end
