# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # A DNS answer about the addresses of a name. Frozen.
      #
      # - addresses [Array<String>] empty when there are none
      # - ttl [Integer] seconds for which it may be kept
      # - absent [Boolean] whether the name itself does not exist (NXDOMAIN), for any type
      # - target [String, nil] wire name that still has to be asked for: the message ended in the middle of an alias
      #
      # @api private
      Answer = Struct.new(:addresses, :ttl, :absent, :target, keyword_init: true) do
        def self.none(ttl: 0, absent: false)
          new(addresses: [].freeze, ttl: ttl, absent: absent).freeze
        end

        # @return [Answer] this one for a name that is its alias
        def through(first)
          self.class.new(addresses: addresses, ttl: [ttl, first.ttl].min, absent: absent, target: target).freeze
        end
      end
    end
  end
end
