# frozen_string_literal: true

require "ipaddr"

module Heddle
  module Net
    module DNS
      # Converts IP addresses between text and bytes without calling libc.
      module AddressText
        IPV4 = /\A(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}\z/

        module_function

        # @param bytes [String] 4 or 16 bytes
        # @return [String] the address as frozen text
        def from_bytes(bytes)
          IPAddr.new_ntoh(bytes).to_s.freeze
        rescue IPAddr::Error
          raise MalformedError, "an IP address has #{bytes.bytesize} bytes, but must have 4 or 16"
        end

        # @return [String] 4 bytes
        # @raise [MalformedError]
        def ipv4_bytes(text)
          raise MalformedError, "#{text.inspect} is not an IPv4 address such as 192.0.2.1" unless text in IPV4

          text.split(".").map!(&:to_i).pack("C4")
        end

        # @return [String] 16 bytes
        # @raise [MalformedError]
        def ipv6_bytes(text)
          address = IPAddr.new(text)
          raise IPAddr::InvalidAddressError unless address.ipv6? && !text.match?(%r{[%/]})

          address.hton
        rescue IPAddr::Error
          raise MalformedError, "#{text.inspect} is not an IPv6 address such as 2001:db8::1"
        end
      end
    end
  end
end
