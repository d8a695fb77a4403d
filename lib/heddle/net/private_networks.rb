# frozen_string_literal: true

require "heddle/net/networks"

module Heddle
  module Net
    # The addresses that are not public (RFC 6890 and its successors): this machine, private and link-local networks,
    # documentation, multicast. An attacker must not be able to make a server connect to them.
    module PrivateNetworks
      ALL = Networks.new(%w[
        loopback private 0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24
        203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 ::/128 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 3fff::/20
        5f00::/16 fec0::/10 ff00::/8
      ])
      # IPv6 networks whose addresses contain an IPv4 address, each with the offset of that IPv4 address in bytes:
      # mapped, compatible, translated (SIIT, RFC 2765), NAT64, 6to4.
      # shareable_constant_value: experimental_everything
      EMBEDDED =
        [["::ffff:0:0/96", 12], ["::/96", 12], ["::ffff:0:0:0/96", 12], ["64:ff9b::/96", 12], ["2002::/16", 2]]
        .map { |network, offset| [IPAddr.new(network), offset] }
      # shareable_constant_value: none
      private_constant :ALL, :EMBEDDED

      module_function

      # @param address [String] an IP address
      # @return [Boolean] whether the address is public
      def outside?(address)
        address = IPAddr.new(address.sub(/%.*/, ""))
        return false if ALL.include?(address.to_s)

        _, offset = EMBEDDED.find { |network, _| address.ipv6? && network.include?(address) }
        !offset || !ALL.include?(IPAddr.new_ntoh(address.hton.byteslice(offset, 4)).to_s)
      end
    end
  end
end
