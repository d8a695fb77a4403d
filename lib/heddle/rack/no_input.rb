# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.input` of requests without a body: the specification allows none at all, but applications from before
    # Rack 3.1 expect one. Has no state, so one serves all.
    class NoInput
      # @param length [Integer, nil] bytes
      # @param buffer [String, nil]
      # @return [String, nil] as IO#read at the end of a file
      def read(length = nil, buffer = nil)
        buffer&.clear
        return buffer || String.new(encoding: Encoding::BINARY) if length.nil? || length == 0

        nil
      end

      # @return [nil]
      def gets = nil

      # @return [self]
      def each = self

      # @return [0]
      def rewind = 0

      # @return [0]
      def pos = 0
      alias tell pos

      # @return [0]
      def size = 0

      # @return [true]
      def eof? = true

      # @return [nil]
      def close = nil

      # @raise [EOFError] always
      def readpartial(_length, buffer = nil)
        buffer&.clear
        raise EOFError, "the request has no body"
      end

      # @return [Encoding]
      def external_encoding = Encoding::BINARY

      # The only one that is needed.
      INSTANCE = new.freeze
    end
  end
end
