# frozen_string_literal: true

module Heddle
  module Net
    class TLS
      # Memory with one text, which forked processes share. One process writes. A checksum tells the others whether they
      # have read a complete text.
      #
      # @api private
      class SharedText
        VERSION = 0
        SIZE = 8
        CHECKSUM = 16
        TEXT = 48
        private_constant :VERSION, :SIZE, :CHECKSUM, :TEXT

        # @param limit [Integer] bytes at most; pages that no text has reached take no memory
        def initialize(limit)
          @limit = limit
          @memory = IO::Buffer.new(TEXT + limit, IO::Buffer::MAPPED | IO::Buffer::SHARED)
        end

        # @return [Integer] rises with each text
        def version = @memory.get_value(:u64, VERSION)

        # @param text [String]
        # @return [Boolean] false: it is too long, and the former one stays
        def write(text)
          return false if text.bytesize > @limit

          @memory.set_value(:u64, SIZE, text.bytesize)
          @memory.set_string(checksum(text), CHECKSUM)
          @memory.set_string(text, TEXT)
          @memory.set_value(:u64, VERSION, version + 1)
          true
        end

        # @return [String, nil] nil: another process is writing one, so try again later
        def read
          size = @memory.get_value(:u64, SIZE)
          text = @memory.get_string(TEXT, [size, @limit].min)
          text if checksum(text) == @memory.get_string(CHECKSUM, TEXT - CHECKSUM)
        end

        private

        def checksum(text) = OpenSSL::Digest.digest("SHA256", text)
      end
    end
  end
end
