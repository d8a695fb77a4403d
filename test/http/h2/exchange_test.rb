# frozen_string_literal: true

# test: sanitize

require "heddle/rack"
require "support/h2_client"
require_relative "../support/http_case"

# Who may do what with an exchange over HTTP/2.
class H2ExchangeTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  # Collects frames as bytes.
  class Frames < H2Client
    attr_reader :bytes

    def initialize
      super(nil)
      @bytes = +"".b
    end

    def send_bytes(bytes) = @bytes << bytes
  end

  def frames(*lines)
    client = Frames.new
    client.send_preface
    lines.each { |line| client.send_frame(line) }
    client.bytes
  end

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
      exchange.write_head("HTTP/1.1 204 No Content\r\n\r\n", true)

      assert_raises(IOError) { exchange.write("late") }
    end
  end

  def test_a_refused_head_request_is_answered_without_content
    lines = ["HEADERS es+eh 1 head a=b c=d", "HEADERS es+eh 3 get a=b c=d"]
    serve(frames(*lines), header_count: 1)
    frames = frames_of(conversation.output)

    assert_equal [1, 3], streams_of(frames, "HEADERS")
    assert_equal [3], streams_of(frames, "DATA")
    assert_equal [1, 3], frames.select(&:end_stream?).map(&:stream).sort
  end

  def streams_of(frames, type) = frames.select { |frame| frame.type == type }.map(&:stream)

  def frames_of(output)
    client = H2Client.new(StringIO.new(output))
    Array.new(100) { client.read_frame }.compact
  end
end
