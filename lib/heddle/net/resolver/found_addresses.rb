# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # The result of a DNS lookup for the addresses of a name. Frozen.
      #
      # - addresses [Array<String>] may be empty
      # - ttl [Integer] seconds for which the result may be cached
      # - absent [Boolean] whether the name itself does not exist (NXDOMAIN), for any type
      # - target [String, nil] the name to look up next, if the message ended within a chain of aliases
      #
      # @api private
      FoundAddresses = Data.define(:addresses, :ttl, :absent, :target) do
        def initialize(addresses: [].freeze, ttl: 0, absent: false, target: nil) = super

        # @param first [FoundAddresses] the earlier result, whose alias led to this one
        # @return [FoundAddresses] this result, with the lower TTL of the two
        def through(first) = with(ttl: [ttl, first.ttl].min)
      end
    end
  end
end
