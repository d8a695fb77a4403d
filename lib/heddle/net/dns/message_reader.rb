# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # Reads the parts of a DNS message in order. A pointer that leaves the message or loops raises MalformedError, and
      # the work is bounded by the size of the message.
      class MessageReader
        # Pointers in one name; ordinary servers need one or two. Each must point further back, but a chain through a
        # whole message, for each of its records, would keep the loop busy for seconds.
        MAX_POINTERS = 32
        # Labels and pointers followed in one message: an ordinary message of 64 KiB needs half of them.
        MAX_STEPS = 32_768
        POINTER = 0xc0
        POINTER_OFFSET = 0x3fff

        # @return [Integer] where the next part begins
        attr_reader :offset

        # @param bytes [String] the whole message
        # @param offset [Integer] where to begin
        def initialize(bytes, offset)
          @bytes = bytes
          @offset = offset
          @steps = 0
        end

        # @return [String] wire name as it is in the message
        def name
          text, @offset = walk_plain(@offset) || walk_pointers(@offset)
          text
        end

        def unpack(template, size)
          values = bytes_at(@offset, size).unpack(template)
          @offset += size
          values
        end

        # @return [String] the next bytes
        def bytes(size)
          bytes = bytes_at(@offset, size)
          @offset += size
          bytes
        end

        # @return [Integer] the next byte
        def octet
          value = byte(@offset)
          @offset += 1
          value
        end

        # @return [String] bytes that have their number in front, such as one piece of a TXT record
        def character_string = bytes(octet)

        def bytes_at(offset, size)
          return @bytes.byteslice(offset, size) if offset + size <= @bytes.bytesize

          raise MalformedError, "the message has #{@bytes.bytesize} bytes, but #{size} are needed at offset #{offset}"
        end

        private

        # A name without pointers, as questions have it, is one piece of the message.
        # @return [Array(String, Integer), nil] the name and the offset after it; nil for any other name
        def walk_plain(start)
          offset = start
          while (size = @bytes.getbyte(offset)) && size.positive?
            return nil if size > Name::MAX_LABEL

            @steps += 1
            offset += 1 + size
          end
          return nil if size.nil? || offset - start > Name::MAX_WIRE || @steps > MAX_STEPS

          [@bytes.byteslice(start, offset - start), offset + 1]
        end

        def walk_pointers(offset)
          text = +"".b
          after = nil
          pointers = 0
          until (size = byte(offset)).zero?
            raise MalformedError, "the message has more than #{MAX_STEPS} labels" if (@steps += 1) > MAX_STEPS

            if size >= POINTER
              target = ((size << 8) | byte(offset + 1)) & POINTER_OFFSET
              pointers += 1
              raise MalformedError, "the pointer at #{offset} does not point backwards" if target >= offset
              raise MalformedError, "a name has more than #{MAX_POINTERS} pointers" if pointers > MAX_POINTERS

              after ||= offset + 2
              offset = target
            else
              text << label(offset, size)
              raise MalformedError, "a name has more than #{Name::MAX_WIRE} bytes" if text.bytesize > Name::MAX_WIRE

              offset += 1 + size
            end
          end
          [text, after || (offset + 1)]
        end

        def byte(offset)
          @bytes.getbyte(offset) or raise MalformedError, "the message ends too early"
        end

        def label(offset, size)
          raise MalformedError, "a label has #{size} bytes, the limit is #{Name::MAX_LABEL}" if size > Name::MAX_LABEL

          bytes_at(offset, 1 + size)
        end
      end
    end
  end
end
