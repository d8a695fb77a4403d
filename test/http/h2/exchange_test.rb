# frozen_string_literal: true

# test: sanitize

require_relative "support/conversations"

# Who may do what with an exchange over HTTP/2.
class H2ExchangeTest < Minitest::Test
  include H2Conversations

  def test_content_without_a_head_is_refused_and_does_not_wait
    error = nil
    serve(frames("HEADERS es+eh 1 get"), open: true) do |exchange|
      error = assert_raises(IOError) { exchange.write("early") }
      reply(exchange, "then")
    end

    assert_equal "a response takes content between its head and its end alone", error.message
    assert_includes conversation.output, "then"
  end

  def test_content_behind_a_head_without_any_is_refused_and_does_not_wait
    serve(frames("HEADERS es+eh 1 get"), open: true) do |exchange|
      exchange.write_head(204, "", true)

      assert_raises(IOError) { exchange.write("late") }
    end
  end

  def test_a_refused_head_request_is_answered_without_content
    sent = frames_for("HEADERS es+eh 1 head a=b c=d", "HEADERS es+eh 3 get a=b c=d", header_count: 1)

    assert_equal [1, 3], streams_of(sent, "HEADERS")
    assert_equal [3], streams_of(sent, "DATA")
    assert_equal [1, 3], sent.select(&:end_stream?).map(&:stream).sort
  end

  def streams_of(frames, type) = frames.select { |frame| frame.type == type }.map(&:stream)
end
