# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Parses numeric addresses in every format that libc accepts: dotted, inet_aton(3)'s short and hexadecimal forms,
      # IPv6 with and without a zone.
      #
      # @api private
      module Literal
        # A host of this shape is never sent to a name server. libc decides whether it is a valid address.
        SHAPE = /:|\A(?:0x\h+|\d+)(?:\.(?:0x\h+|\d+)){0,3}\z/i

        # @param host [String]
        # @return [Array<String>, nil] the address; empty: it looks like an address but is invalid; nil: it is a name
        def self.parse(host)
          return [host.dup.freeze].freeze if DNS::AddressText::IPV4.match?(host)
          return nil unless SHAPE.match?(host)

          # With AI_NUMERICHOST, Ruby does not call the scheduler's hook address_resolve again, and libc does no lookup.
          found = Addrinfo.getaddrinfo(host, nil, nil, :STREAM, nil, Socket::AI_NUMERICHOST)
          found.map { |address| address.ip_address.freeze }.freeze
        rescue SocketError
          [].freeze
        end
      end
    end
  end
end
