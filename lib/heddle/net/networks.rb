# frozen_string_literal: true

require "ipaddr"
require "heddle/native"

module Heddle
  module Net
    # A set of networks, such as the networks of trusted proxies. Frozen and shareable.
    #
    #     Heddle::Net::Networks.new(["loopback", "192.0.2.0/24", "2001:db8::/32"]).include?("192.0.2.7") # => true
    class Networks
      # Names for networks. "unix" stands for clients of unix sockets, which "all" includes, too.
      # shareable_constant_value: literal
      WORDS = {
        "loopback" => %w[127.0.0.0/8 ::1/128],
        # private (RFC 1918, RFC 4193) and link-local networks (RFC 3927, RFC 4291)
        "private" => %w[10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 169.254.0.0/16 fe80::/10],
        "unix" => [],
        "all" => %w[0.0.0.0/0 ::/0],
        "none" => []
      }
      # shareable_constant_value: none
      private_constant :WORDS

      # @param names [Array<String>] addresses, networks as address/bits, and keys of {WORDS}
      # @raise [ArgumentError] if a name is invalid
      def initialize(names)
        names = Array(names)
        set_up(names.flat_map { |name| parse(name) }, names.intersect?(%w[unix all]))
      end

      # @param address [String] an IP address, or "unix"
      # @return [Boolean]
      # @raise [ArgumentError]
      def include?(address) = have?(address == "unix" ? nil : IPAddr.new(address).hton)

      # @param bytes [String] an IP address in 4 or 16 bytes
      # @return [Boolean]
      def cover?(bytes) = have?(bytes)

      private

      def parse(name)
        WORDS.fetch(name) { [name] }.map do |network|
          address = IPAddr.new(network)
          [address.hton, address.prefix]
        end
      rescue IPAddr::Error
        raise ArgumentError, "#{name.inspect} is not a network: write 192.0.2.1, 192.0.2.0/24, 2001:db8::/32, " \
                             "#{WORDS.keys[..-2].join(", ")} or #{WORDS.keys.last}"
      end
    end
  end
end
