# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.input` of requests without a body: since Rack 3.1 it may be absent, but older applications expect it. One
    # object serves all requests, so it has no state: it can't be closed, and stays at its beginning.
    class NoInput < Input
      def initialize = super("".b.freeze)

      # @return [nil]
      def close = nil

      # @return [0]
      def seek(*) = 0
      alias rewind seek

      # @return [Integer] what was given
      def pos=(_position); end

      # @return [Integer] what was given
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
