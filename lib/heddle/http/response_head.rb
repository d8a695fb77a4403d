# frozen_string_literal: true

module Heddle
  module HTTP
    # The head of an answer as bytes, and how it frames the content that follows.
    #
    # @!attribute status [Integer] as sent
    # @!attribute bytes [String] lines of HTTP/1.1, or the fields that H2::Exchange#write_head takes
    # @!attribute framing [Symbol] how the content is framed: :none (there is none), :length, :chunked, :close
    #   (up to the end of the connection) or :raw (after an upgrade, the connection is the stream's)
    # @!attribute length [Integer, nil] of the content in bytes, where it is known
    # @!attribute keep_alive [Boolean] whether the connection may serve another request afterwards
    # @!attribute precoded [Boolean] whether the application provides content that is chunked already
    ResponseHead = Struct.new(:status, :bytes, :framing, :length, :keep_alive, :precoded)
  end
end
