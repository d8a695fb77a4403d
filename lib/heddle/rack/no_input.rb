# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.input` of requests without a body. Rack 3.1 makes it optional, but older applications expect it. All
    # requests share one object, so it has no state: it can't be closed, and its position is always 0.
    class NoInput < Input
      def initialize = super("".b.freeze)

      # @return [nil]
      def close = nil

      # @return [0]
      def seek(*) = 0
      alias rewind seek

      # @return [Integer] the argument
      def pos=(_position); end

      # @return [Integer] the argument
      def lineno=(_number); end

      # @return [self]
      def set_encoding(*, **) = self

      def take(_length) = "".b
      private :take

      # The only instance.
      INSTANCE = new.freeze
    end
  end
end
