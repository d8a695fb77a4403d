# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # Takes a body of known length out of the bytes of a connection.
      class LengthDecoder
        # @return [Integer] bytes that are still to come
        attr_reader :remaining

        # @param length [Integer] bytes
        def initialize(length)
          @remaining = length
        end

        # @return [Boolean] whether the body is complete
        def done? = @remaining == 0

        # @return [nil] a body of known length can't be malformed
        def refusal = nil

        # @param buffer [String] binary
        # @param position [Integer] where undecoded bytes start in it
        # @param output [String] binary; the body's bytes are appended
        # @return [Integer] position of the first byte that is not part of the body, or not here yet
        def decode(buffer, position, output)
          available = buffer.bytesize - position
          available = @remaining if available > @remaining
          return position if available == 0

          @remaining -= available
          output << (available == buffer.bytesize ? buffer : buffer.byteslice(position, available))
          position + available
        end
      end
    end
  end
end
