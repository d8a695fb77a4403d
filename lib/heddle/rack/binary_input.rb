# frozen_string_literal: true

module Heddle
  module Rack
    # The methods that {Input} and {StreamedInput} have in common. Both set +@closed+.
    module BinaryInput
      # @yieldparam line [String]
      # @return [self]
      def each
        while (line = gets)
          yield line
        end
        self
      end

      # @return [Boolean]
      def closed? = @closed

      # @return [Encoding]
      def external_encoding = Encoding::BINARY

      private

      def check_open
        raise IOError, "the request's body is closed" if @closed
      end
    end
  end
end
