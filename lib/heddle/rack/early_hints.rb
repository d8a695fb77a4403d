# frozen_string_literal: true

module Heddle
  module Rack
    # `rack.early_hints`: tells the client what it may load while the response is being made (RFC 8297).
    class EarlyHints
      class << self
        # @param exchange [HTTP::Exchange]
        # @param policy [Symbol] the option early_hints: `:off`, `:on` or `:always`
        # @return [Boolean] whether the application may send hints to this client
        def allowed?(exchange, policy)
          # A proxy that does not know 103 (nginx before 1.29) takes it for the response.
          policy != :off && exchange.interim? && (policy == :always || !exchange.proxied?)
        end
      end

      # @param exchange [HTTP::Exchange]
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
