# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Addresses written as numbers, in every way that libc reads: dotted, inet_aton(3)'s short and hexadecimal
      # forms, IPv6 with and without a zone.
      #
      # @api private
      module Literal
        # A host of this shape is never sent to a name server. Whether it is an address, libc decides.
        SHAPE = /:|\A(?:0x\h+|\d+)(?:\.(?:0x\h+|\d+)){0,3}\z/i
        PLAIN = /\A(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!\z)|\z)){4}\z/

        # @param host [String]
        # @return [Array<String>, nil] the address; empty if it looks like an address and is not one; nil for a name
        def self.parse(host)
          return [host.dup.freeze].freeze if PLAIN.match?(host)
          return nil unless SHAPE.match?(host)

          # With AI_NUMERICHOST Ruby does not call the scheduler's hook address_resolve again, and libc asks no name
          # server.
          found = Addrinfo.getaddrinfo(host, nil, nil, :STREAM, nil, Socket::AI_NUMERICHOST)
          found.map { |address| address.ip_address.freeze }.freeze
        rescue SocketError
          [].freeze
        end
      end
    end
  end
end
