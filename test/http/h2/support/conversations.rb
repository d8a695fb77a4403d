# frozen_string_literal: true

require "heddle/rack"
require "support/h2_client"
require_relative "../../support/http_case"

# Conversations over HTTP/2, in the words of cases.txt.
module H2Conversations
  include Heddle::TestHelpers::HTTPCase

  # Frames as bytes.
  class Frames < H2Client
    attr_reader :bytes

    def initialize
      super(nil)
      @bytes = +"".b
    end

    def send_bytes(bytes) = @bytes << bytes
  end

  # @return [String] the preface and these frames
  def frames(*lines)
    client = Frames.new
    client.send_preface
    lines.each { |line| client.send_frame(line) }
    client.bytes
  end

  # @return [Array<H2Client::Frame>] what the server sends to a client that ends behind these frames
  def frames_for(*lines, **, &) = frames_of(serve(frames(*lines), **, &))

  # @return [Array<H2Client::Frame>]
  def frames_of(output)
    client = H2Client.new(StringIO.new(output))
    frames = []
    while (frame = client.read_frame)
      frames << frame
    end
    frames
  end

  # @return [Array<Array(String, Integer)>] error codes with their streams
  def errors_for(...) = frames_for(...).select(&:error).map { |frame| [frame.error, frame.stream] }

  # @return [Array<Array(Integer, String)>] what the engine reports: statuses and reasons
  def rejections_of(...)
    frames_for(...)
    conversation.rejections
  end
end
