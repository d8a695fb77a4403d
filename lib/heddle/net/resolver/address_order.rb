# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Sorts IPv4 and IPv6 addresses in the order in which a client should try them, like libc (RFC 6724, section 6).
      # Addresses of a family without a route come last (rule 1). Otherwise the precedence in the policy table decides
      # (rule 6). If all addresses are of one family, they keep their order.
      #
      # @api private
      class AddressOrder
        # prefix (first bytes of the address as hexadecimal) => precedence, from RFC 6724, section 2.1
        POLICY = {
          "00000000000000000000000000000001" => 50,
          "20010000" => 5,
          "2002" => 30,
          "3ffe" => 1,
          "fc" => 3,
          "fd" => 3
        }.freeze
        SITE_LOCAL = /\Afe[c-f]/
        IPV4 = 35
        IPV6 = 40

        # Nothing is sent to this port, so any number except 0 would do.
        PROBE_PORT = 9

        # @param reachable [#call, nil] takes an address (String) and returns whether it has a route; nil: ask the
        #   kernel
        def initialize(reachable = nil)
          @reachable = reachable || method(:route?)
        end

        # @param addresses [Array<String>]
        # @return [Array<String>] the sorted addresses, frozen
        def sort(addresses)
          families = addresses.group_by { |address| address.include?(":") }
          return addresses.frozen? ? addresses : addresses.dup.freeze if families.size < 2

          unreachable = families.reject { |_, some| @reachable.call(some.first) }
          addresses.sort_by.with_index do |address, index|
            [unreachable.key?(address.include?(":")) ? 1 : 0, -precedence(address), index]
          end.freeze
        end

        private

        def precedence(address)
          return IPV4 unless address.include?(":")

          hex = Addrinfo.udp(address.split("%").first, PROBE_PORT).to_sockaddr.byteslice(8, 16).unpack1("H*")
          return 1 if SITE_LOCAL.match?(hex)

          POLICY.find { |prefix, _| hex.start_with?(prefix) }&.last || IPV6
        end

        # Connecting a datagram socket makes the kernel look up a route and a source address, but sends nothing.
        def route?(address)
          Addrinfo.udp(address, PROBE_PORT).connect(&:close)
          true
        rescue SystemCallError, SocketError
          false
        end
      end
    end
  end
end
