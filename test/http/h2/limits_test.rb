# frozen_string_literal: true

# test: sanitize

require_relative "support/conversations"

# What the server does beyond each limit that HTTP/1.1 does not have.
class H2LimitsTest < Minitest::Test
  include H2Conversations

  CALM = [["ENHANCE_YOUR_CALM", 0]].freeze
  RESET = Array.new(300) { |i| ["HEADERS eh #{(2 * i) + 1} post", "RST_STREAM - #{(2 * i) + 1} #8"] }.freeze

  # Frames that are allowed, and more that are not. Buckets are refilled at 330 a second, so the surplus is large.
  {
    resets: [RESET.first(100).flatten, RESET.flatten],
    control_frames: [["fe - 0"] * 990, ["fe - 0"] * 5_000],
    control_answers: [["PING - 0 0000000000000000"] * 99, ["PING - 0 0000000000000000"] * 102],
    overhead: [["fe - 0 00*9000"] * 500, ["fe - 0 00*16384"] * 600],
    window_updates: [["WINDOW_UPDATE - 0 #1"] * 100, ["WINDOW_UPDATE - 0 #1"] * 101],
    continuations: [0, 4].map { |n| ["HEADERS es 1 get", *["CONTINUATION - 1 a=b"] * n, "CONTINUATION eh 1 a=b"] },
    settings: [32, 33].map { |n| ["SETTINGS - 0 00030000ffff*#{n}"] }
  }.each do |limit, (allowed, more)|
    define_method("test_connection_ends_beyond_the_limit_of_#{limit}") do
      assert_equal CALM, errors_for(*more).reject { |frame| frame.first == "CANCEL" }
      assert_empty errors_for(*allowed).map(&:first) - %w[CANCEL]
    end
  end

  def test_limit_of_resets_grows_with_http2_streams
    assert_empty errors_for(*RESET.first(290).flatten, http2_streams: 300).map(&:first) - %w[CANCEL]
  end

  def test_limit_of_continuations_grows_with_header_limit
    lines = ["HEADERS es 1 get", *["CONTINUATION - 1 a=b"] * 9, "CONTINUATION eh 1 a=b"]

    assert_equal CALM, errors_for(*lines)
    assert_empty errors_for(*lines, header_limit: 160_000)
  end

  def test_streams_beyond_http2_streams_are_refused
    lines = ["HEADERS eh 1 post", "HEADERS eh 3 post"]

    assert_equal [["REFUSED_STREAM", 3]], errors_for(*lines, http2_streams: 1) - [["CANCEL", 1]]
    assert_empty errors_for(*lines).map(&:first) - %w[CANCEL]
  end

  def test_50_cookies_are_not_counted_as_fields
    request = "HEADERS es+eh 1 get a=b#{" cookie=a" * 50}"

    assert_equal [[431, "the header fields are too many or too large"]],
                 rejections_of("#{request} cookie=a", header_count: 1)
    assert_empty rejections_of(request, header_count: 1)
  end

  def test_connection_has_a_window_of_1_mib
    assert_equal [1_048_576 - 65_535], connection_windows
  end

  def connection_windows(**)
    updates = frames_for(**).select { |frame| frame.type == "WINDOW_UPDATE" && frame.stream.zero? }
    updates.map { |frame| frame.payload.unpack1("N") }
  end

  # A client whose windows are closed: how much of its responses does the server keep?
  def kept(requests)
    size = 0
    write = lambda do |exchange|
      exchange.response.start(200, {})
      loop do
        exchange.response.write("x" * 16_384)
        size += 16_384
      end
    end
    lines = Array.new(requests) { |i| "HEADERS es+eh #{(2 * i) + 1} get" }
    converse(write) do |conversation|
      conversation.say(frames("SETTINGS - 0 000400000000", *lines))
      before, ticks = nil
      conversation.await do
        ticks = size == before ? ticks + 1 : 0
        before = size
        size.positive? && ticks > 5
      end
      size
    end
  end

  def test_unread_response_keeps_256_kib_at_most
    assert_equal 262_144, kept(1)
  end

  def test_unread_responses_of_a_connection_keep_1_mib_at_most
    assert_equal 1_048_576, kept(4)
    assert_equal 1_048_576 + (2 * 16_384), kept(6), "and a frame of each further one"
  end

  def test_unread_response_is_reset_after_write_timeout
    frames = ["SETTINGS - 0 000400000000", "HEADERS es+eh 1 get"]
    converse(lambda { |exchange|
      exchange.response.start(200, {})
      loop { exchange.response.write("x" * 16_384) }
    }, write_timeout: 0.1) do |conversation|
      conversation.say(frames(*frames))
      conversation.await { conversation.raised.any? }
      conversation.settle
      errors = frames_of(conversation.output).filter_map(&:error)

      assert_equal %w[CANCEL], errors
      assert_equal [Heddle::ClientGoneError], conversation.raised.map(&:class)
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
end
