# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The chunked coding of an answer (RFC 9112, 7.1).
      module Chunk
        LINE_END = "\r\n".b.freeze
        LAST = "0\r\n\r\n".b.freeze

        # @param data [String] not empty: an empty chunk would end the body
        # @return [Array<String>] what to send, the data itself not copied
        def self.encode(data) = ["#{data.bytesize.to_s(16)}\r\n".b, data, LINE_END]
      end
    end
  end
end
