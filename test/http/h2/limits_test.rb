# frozen_string_literal: true

# test: sanitize

require_relative "support/conversations"

# The limits of HTTP/2 alone: what each answers when it is as small as it may be, and that the default allows the same.
class H2LimitsTest < Minitest::Test
  include H2Conversations

  CALM = [["ENHANCE_YOUR_CALM", 0]].freeze

  # Option, value, frames, and what is answered.
  {
    http2_streams: [1, ["HEADERS eh 1 post", "HEADERS eh 3 post"], [["REFUSED_STREAM", 3]]],
    http2_resets: [1, ["HEADERS eh 1 post", "RST_STREAM - 1 #8", "HEADERS eh 3 post", "RST_STREAM - 3 #8"], CALM],
    http2_control_frames: [10, ["PING - 0 0000000000000000"] * 11, CALM],
    http2_control_answers: [2, ["PING - 0 0000000000000000"] * 3, CALM],
    http2_overhead: [1_024, ["fe - 0 00*9000"], CALM],
    http2_updates: [10, ["WINDOW_UPDATE - 0 #1"] * 11, CALM],
    http2_continuations: [0, ["HEADERS es 1 get", "CONTINUATION eh 1 a=b"], CALM],
    http2_settings: [6, ["SETTINGS - 0 00030000ffff*7"], CALM]
  }.each do |option, (value, lines, answer)|
    define_method("test_#{option}") do
      assert_equal answer, errors_for(*lines, option => value) - [["CANCEL", 1]]
      assert_empty errors_for(*lines).map(&:first) - %w[CANCEL]
    end
  end

  def test_http2_cookies
    request = "HEADERS es+eh 1 get cookie=a cookie=b cookie=c"

    assert_equal [[431, "the header fields are too many or too large"]],
                 rejections_of(request, http2_cookies: 1, header_count: 1)
    assert_empty rejections_of(request, header_count: 1)
  end

  def test_http2_body_window
    assert_empty connection_windows(http2_body_window: 65_535)
    assert_equal [1_000], connection_windows(http2_body_window: 66_535)
    assert_equal [1_048_576 - 65_535], connection_windows
  end

  def connection_windows(**)
    updates = frames_for(**).select { |frame| frame.type == "WINDOW_UPDATE" && frame.stream.zero? }
    updates.map { |frame| frame.payload.unpack1("N") }
  end

  # A client whose windows are closed: how much of a response does the server keep?
  def kept(**limits)
    size = 0
    serve(frames("SETTINGS - 0 000400000000", "HEADERS es+eh 1 get"), **limits) do |exchange|
      response = exchange.response
      response.start(200, {})
      loop do
        response.write("x" * 16_384)
        size += 16_384
      end
    end

    assert_equal [Heddle::ClientGone], conversation.raised.map(&:class)
    size
  end

  def test_http2_response_buffer
    assert_equal 16_384, kept(http2_response_buffer: 16_384)
    assert_equal 262_144, kept
  end

  def test_http2_connection_buffer
    assert_equal 32_768, kept(http2_connection_buffer: 32_768)
  end

  def test_http2_write_rate
    frames = ["SETTINGS - 0 000400000000", "HEADERS es+eh 1 get"]
    converse(lambda { |exchange|
      exchange.response.start(200, {})
      loop { exchange.response.write("x" * 16_384) }
    }, http2_write_rate: 1_000_000, write_timeout: 0.1) do |conversation|
      conversation.say(frames(*frames))
      conversation.await { conversation.raised.any? }
      conversation.settle
      errors = frames_of(conversation.output).filter_map(&:error)

      assert_equal %w[CANCEL], errors
      assert_equal [Heddle::ClientGone], conversation.raised.map(&:class)
    end
  end

  # Each request that waits counts more than a kilobyte; a connection has 114,688 and body_buffer of its own.
  def test_http2_memory
    requests = Array.new(100) { |i| "HEADERS eh #{(2 * i) + 1} post" }
    refused = refused_of(*requests, http2_memory: 0, body_buffer: 0)

    assert_operator refused.size, :>, 10
    assert_equal 199.step(by: -2).first(refused.size).reverse, refused
    assert_empty refused_of(*requests, body_buffer: 0)
  end

  # Beyond three quarters of it bodies go to files, so the rest is for heads.
  def test_http2_memory_that_bodies_use_refuses_no_request
    requests = Array.new(150) { |i| ["HEADERS eh #{(2 * i) + 1} post", "DATA - #{(2 * i) + 1} 00*8192"] }.flatten

    assert_empty refused_of(*requests, http2_memory: 1_048_576, http2_streams: 200)
  end

  # @return [Array<Integer>] streams
  def refused_of(...) = errors_for(...).filter_map { |error, stream| stream if error == "REFUSED_STREAM" }

  def rejections_of(...)
    frames_for(...)
    conversation.rejections
  end
end
