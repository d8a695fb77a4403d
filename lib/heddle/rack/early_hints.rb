# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.early_hints`: tells the client what it may load while the answer is being made (RFC 8297).
    class EarlyHints
      # @param exchange [HTTP::H1::Exchange]
      def initialize(exchange)
        @exchange = exchange
      end

      # @param headers [Hash{String => String, Array<String>}]
      # @return [nil]
      def call(headers)
        @exchange.response.early_hints(headers)
        nil
      end
    end
  end
end
