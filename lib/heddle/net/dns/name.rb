# frozen_string_literal: true

require "heddle/arguments"

module Heddle
  module Net
    module DNS
      # Converts domain names between text and wire format (RFC 1035, sections 3.1 and 5.1).
      #
      # The text has no final dot; the root is "". Inside a label, `\.` is a dot and `\\` is a backslash. Spaces, and
      # bytes outside of printable ASCII, are written as a backslash and three decimal digits: `\032` is a space.
      module Name
        MAX_LABEL = 63
        # Maximum bytes in wire format, without the final zero (RFC 1035, section 2.3.4).
        MAX_WIRE = 254

        # Bytes of a label that need a backslash in text.
        SPECIAL = %r{[^!-\-/-\[\]-~]}n
        # Bytes of a name, apart from its dots, that need a backslash in text.
        UNUSUAL = /[^!-\[\]-~]/n
        DOT = ".".ord
        ESCAPE = /\\(\d{3}|.)/mn

        module_function

        # @param wire [String] labels, each after its length octet, without the final zero
        # @return [String] the name as text
        def from_wire(wire) = from_plain_wire(wire) || from_any_wire(wire)

        # Fast path for names without escapes: replaces the length octets by dots.
        # @return [String, nil] nil: a byte of the name needs a backslash
        def from_plain_wire(wire)
          return "" if wire.empty?

          text = wire.byteslice(1..)
          offset = wire.getbyte(0)
          dots = 0
          while offset < text.bytesize
            dots += 1
            size = text.getbyte(offset)
            text.setbyte(offset, DOT)
            offset += 1 + size
          end
          text.force_encoding(Encoding::UTF_8) if !UNUSUAL.match?(text) && text.count(".") == dots
        end

        def from_any_wire(wire)
          text = +""
          offset = 0
          while offset < wire.bytesize
            size = wire.getbyte(offset)
            label = wire.byteslice(offset + 1, size)
            label = escape(label) if SPECIAL.match?(label)
            text << "." unless offset.zero?
            text << label
            offset += 1 + size
          end
          text
        end

        # @param text [String] a name with or without the final dot
        # @return [String] labels, each after its length octet, without the final zero
        # @raise [MalformedError] if a label is empty or too long, or the name is too long
        def to_wire(text)
          wire = "".b
          labels(text).each do |label|
            raise MalformedError, "#{text.inspect} is not a domain name: a label needs 1 to #{MAX_LABEL} bytes" unless
              label.bytesize.between?(1, MAX_LABEL)

            wire << label.bytesize << label
          end
          return wire if wire.bytesize <= MAX_WIRE

          raise MalformedError, "#{text.inspect} is not a domain name: it has more than #{MAX_WIRE - 1} bytes"
        end

        # @param text [String]
        # @return [Array<String>] the labels, unescaped
        def labels(text)
          text = Arguments.string("the name", text)
          return text.b.delete_suffix(".").split(".", -1) unless text.include?("\\")

          # A label is a run of escapes and of bytes that are neither a backslash nor a dot.
          bytes = text.b
          parts = bytes.scan(/((?:\\\d{3}|\\[^\d]|[^\\.])*)(\.|\z)/mn)
          parts.pop if parts.last&.first == "" # the empty match after the name
          unless parts.sum { |label, dot| label.bytesize + dot.bytesize } == bytes.bytesize
            raise MalformedError, "#{text.inspect} is not a domain name: \\ must be followed by three digits or by " \
                                  "one other character"
          end

          parts.map { |label, _| unescape(label, text) }
        end

        def escape(label)
          label.gsub(SPECIAL) { |byte| [".", "\\"].include?(byte) ? "\\#{byte}" : format("\\%03d", byte.ord) }
        end

        def unescape(label, text)
          label.gsub(ESCAPE) do
            found = Regexp.last_match(1)
            next found if found.bytesize == 1
            raise MalformedError, "#{text.inspect} is not a domain name: \\#{found} is not a byte" if found.to_i > 255

            found.to_i.chr
          end
        end
      end
    end
  end
end
