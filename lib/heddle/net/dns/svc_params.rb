# frozen_string_literal: true

require_relative "address_text"
require_relative "malformed_error"

module Heddle
  module Net
    module DNS
      # The parameters of SVCB and HTTPS records (RFC 9460, section 14.3), as a Hash:
      #
      # | name | value |
      # | - | - |
      # | `:mandatory` | Array of names |
      # | `:alpn` | Array of Strings |
      # | `:"no-default-alpn"` | true |
      # | `:port` | Integer |
      # | `:ipv4hint`, `:ipv6hint` | Array of addresses |
      # | `:ech`, `:key7` and so on | bytes |
      module SvcParams
        KEYS = {
          mandatory: 0, alpn: 1, "no-default-alpn": 2, port: 3, ipv4hint: 4, ech: 5, ipv6hint: 6
        }.freeze
        NAMES = KEYS.invert.freeze

        module_function

        # @return [Hash] frozen
        # @raise [MalformedError] unless the keys ascend
        def read(reader, at_end)
          params = {}
          last = -1
          while reader.offset < at_end
            key, size = reader.unpack("nn", 4)
            raise MalformedError, "parameter #{key} after #{last}" if key <= last

            name = NAMES[key] || :"key#{key}"
            params[name] = decode(name, reader.bytes(size)).freeze
            last = key
          end
          params.freeze
        end

        def write(params, writer)
          params.map { |name, value| [number(name), name, value] }.sort_by(&:first).each do |key, name, value|
            writer.pack([key], "n")
            writer.sized { writer.raw(encode(name, value)) }
          end
        end

        # @return [String] as in a zone file
        def text(params)
          params.map do |name, value|
            case value
            when true then name.to_s
            when Array then "#{name}=#{value.join(",")}"
            when String then "#{name}=#{Data.quote(value)}"
            else "#{name}=#{value}"
            end
          end.join(" ")
        end

        def number(name)
          KEYS[name] || name.to_s[/\Akey(\d{1,5})\z/, 1]&.to_i ||
            raise(MalformedError, "#{name.inspect} is not a parameter (known: #{KEYS.keys.join(", ")}, key7 …)")
        end

        def decode(name, bytes)
          case name
          when :mandatory then even(bytes, 2).unpack("n*").map { |key| NAMES[key] || :"key#{key}" }
          when :alpn then strings(bytes)
          when :"no-default-alpn" then bytes.empty? || raise(MalformedError, "no-default-alpn with a value")
          when :port
            raise MalformedError, "port of #{bytes.bytesize} bytes" unless bytes.bytesize == 2

            bytes.unpack1("n")
          when :ipv4hint then addresses(bytes, 4)
          when :ipv6hint then addresses(bytes, 16)
          else bytes
          end
        end

        def encode(name, value)
          case name
          when :mandatory then value.map { |key| number(key) }.sort.pack("n*")
          when :alpn then value.map { |one| [one.bytesize].pack("C") << one.b }.join
          when :"no-default-alpn" then ""
          when :port then [value].pack("n")
          when :ipv4hint then Array(value).map { |address| AddressText.ipv4_bytes(address) }.join
          when :ipv6hint then Array(value).map { |address| AddressText.ipv6_bytes(address) }.join
          else value.b
          end
        end

        def addresses(bytes, size)
          even(bytes, size).scan(/.{#{size}}/mn).map { |address| AddressText.from_bytes(address) }
        end

        def even(bytes, size)
          return bytes if bytes.bytesize.positive? && (bytes.bytesize % size).zero?

          raise MalformedError, "the parameter's #{bytes.bytesize} bytes are not addresses of #{size} bytes each"
        end

        def strings(bytes)
          found = []
          at = 0
          while at < bytes.bytesize
            size = bytes.getbyte(at)
            if size.zero? || at + 1 + size > bytes.bytesize
              raise MalformedError, "alpn: an entry's length is #{size}, which is zero or beyond the parameter's end"
            end

            found << bytes.byteslice(at + 1, size).freeze
            at += 1 + size
          end
          found
        end
      end
    end
  end
end
