# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # Writes the parts of a DNS message. Compresses names where RFC 3597, section 4, allows it.
      class MessageWriter
        # The largest offset that a compression pointer, which has 14 bits, can contain.
        MAX_POINTER = 0x3fff
        POINTER = 0xc000

        # @return [String] the bytes written so far
        attr_reader :bytes

        def initialize(bytes = "".b)
          @bytes = bytes
          @offsets = nil # wire name or its suffix => offset in the message
          @first_text = @first_wire = @first_offset = nil
        end

        # Writes the first name of a message. Most messages have no other name, so the suffixes of the first name are
        # recorded only when a different name is written.
        #
        # @param wire [String] the name in wire format, without the final zero
        # @param text [String] the same name as text
        def first_name(wire, text)
          @first_text = text
          @first_wire = wire
          @first_offset = @bytes.bytesize
          @bytes << wire << 0
        end

        # Writes a name. If the name or one of its suffixes was already written in the same letter case, a pointer
        # replaces the name or suffix.
        # @param text [String]
        def name(text)
          return point_to(@first_offset) if text == @first_text && !text.empty?

          wire = Name.to_wire(text)
          @offsets ||= suffixes_of_first
          until wire.empty?
            offset = @offsets[wire]
            return point_to(offset) if offset

            @offsets[wire] = @bytes.bytesize if @bytes.bytesize <= MAX_POINTER
            size = 1 + wire.getbyte(0)
            @bytes << wire.byteslice(0, size)
            wire = wire.byteslice(size..)
          end
          @bytes << 0
        end

        # Writes a name without pointers. Required in records of types that a receiver may not know, because such a
        # receiver could not decompress the name.
        def whole_name(text)
          @bytes << Name.to_wire(text) << 0
        end

        def pack(values, template)
          @bytes << values.pack(template)
        end

        # @param bytes [String]
        def raw(bytes)
          @bytes << bytes
        end

        # @param string [String] at most 255 bytes; written after a length octet
        # @raise [MalformedError]
        def character_string(string)
          size = string.bytesize
          raise MalformedError, "a string has #{size} bytes, but may have 255 at most" if size > 255

          @bytes << size << string.b
        end

        # Calls the block, and writes two bytes in front of the block's output: the size of this output.
        # @raise [MalformedError] if the block writes more than 65,535 bytes
        def sized
          at = @bytes.bytesize
          @bytes << "\0\0"
          yield self
          size = @bytes.bytesize - at - 2
          raise MalformedError, "the data of a record has #{size} bytes, but may have 65535 at most" if size > 65_535

          @bytes.setbyte(at, size >> 8)
          @bytes.setbyte(at + 1, size & 0xff)
        end

        # Truncates the message.
        # @param size [Integer] number of bytes to keep
        def cut(size)
          @bytes = @bytes.byteslice(0, size)
          @offsets&.delete_if { |_, offset| offset >= size }
        end

        private

        def point_to(offset)
          @bytes << [POINTER | offset].pack("n")
        end

        # @return [Hash{String => Integer}]
        def suffixes_of_first
          wire = @first_wire.to_s
          offsets = {}
          at = 0
          while at < wire.bytesize
            offsets[wire.byteslice(at..)] = @first_offset + at
            at += 1 + wire.getbyte(at)
          end
          offsets
        end
      end
    end
  end
end
