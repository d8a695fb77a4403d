# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.early_hints`: tells the client what it may load while the answer is being made (RFC 8297).
    class EarlyHints
      # @param response [HTTP::H1::Response]
      def initialize(response)
        @response = response
      end

      # @param headers [Hash{String => String, Array<String>}]
      # @return [nil]
      def call(headers)
        @response.early_hints(headers)
        nil
      end
    end
  end
end
