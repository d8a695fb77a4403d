# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # What DNS says about the addresses of a name. Frozen.
      #
      # - addresses [Array<String>] empty when there are none
      # - ttl [Integer] seconds for which it may be kept
      # - absent [Boolean] whether the name itself does not exist (NXDOMAIN), for any type
      # - target [String, nil] name to ask for next, because the message ended within a chain of aliases
      #
      # @api private
      FoundAddresses = Data.define(:addresses, :ttl, :absent, :target) do
        def initialize(addresses: [].freeze, ttl: 0, absent: false, target: nil) = super

        # @param first [FoundAddresses] the answer with the alias that led to this one
        # @return [FoundAddresses] this one, with the lower TTL of both
        def through(first) = with(ttl: [ttl, first.ttl].min)
      end
    end
  end
end
