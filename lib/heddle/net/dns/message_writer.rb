# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # Writes the parts of a DNS message, with names compressed where RFC 3597, section 4 allows it.
      class MessageWriter
        # Pointers have 14 bits.
        MAX_POINTER = 0x3fff
        POINTER = 0xc000

        # @return [String] what has been written so far
        attr_reader :bytes

        def initialize(bytes = "".b)
          @bytes = bytes
          @offsets = nil # of wire suffixes
          @first_text = @first_wire = @first_offset = nil
        end

        # The first name of a message. Most messages have no other, so its suffixes are recorded only when another name
        # is written.
        #
        # @param wire [String] a name as in a message, without the final zero
        # @param text [String] the same name as text
        def first_name(wire, text)
          @first_text = text
          @first_wire = wire
          @first_offset = @bytes.bytesize
          @bytes << wire << 0
        end

        # @param text [String] a name; if the same name, in the same case, was written before, a pointer to it is
        #   written
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

        # Writes a name without pointers: a receiver that does not know the record's type could not follow them.
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

        # @param string [String] at most 255 bytes; their number goes in front
        # @raise [MalformedError]
        def character_string(string)
          raise MalformedError, "a string of #{string.bytesize} bytes: the maximum is 255" if string.bytesize > 255

          @bytes << string.bytesize << string.b
        end

        # Writes what the block writes, with its size in two bytes in front.
        # @raise [MalformedError] when it is larger than 65,535 bytes
        def sized
          at = @bytes.bytesize
          @bytes << "\0\0"
          yield self
          size = @bytes.bytesize - at - 2
          raise MalformedError, "record data of #{size} bytes: the maximum is 65535" if size > 65_535

          @bytes.setbyte(at, size >> 8)
          @bytes.setbyte(at + 1, size & 0xff)
        end

        # Removes all bytes after the first ones.
        # @param size [Integer] how many stay
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
