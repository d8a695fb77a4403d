# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # Takes whatever comes until the end of input: the client's side of a connection after an upgrade.
      class RawDecoder
        # @return [Boolean] only the end of input ends it
        def done? = false

        # @return [nil]
        def refusal = nil

        # @return [nil] it is not known how much is to come
        def remaining = nil

        # @param buffer [String] binary
        # @param position [Integer] where undecoded bytes start in it
        # @param output [String] binary; the bytes are appended
        # @return [Integer] the end of the buffer
        def decode(buffer, position, output)
          output << buffer.byteslice(position, buffer.bytesize)
          buffer.bytesize
        end
      end
    end
  end
end
