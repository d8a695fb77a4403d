# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # Reads the parts of a DNS message in order. Raises MalformedError for a compression pointer that does not point
      # backwards. MAX_POINTERS limits the work for one name, and MAX_STEPS that for the whole message.
      class MessageReader
        # Maximum number of pointers in one name; ordinary servers use one or two. Without a limit, long chains of
        # pointers in every record could keep the loop busy for seconds.
        MAX_POINTERS = 32
        # Maximum number of labels and pointers to read in one message. An ordinary message of 64 KiB has half as many.
        MAX_STEPS = 32_768
        POINTER = 0xc0
        POINTER_OFFSET = 0x3fff

        # @return [Integer] offset of the next part
        attr_reader :offset

        # @param bytes [String] the whole message
        # @param offset [Integer] offset of the first part to read
        def initialize(bytes, offset)
          @bytes = bytes
          @offset = offset
          @steps = 0
        end

        # @return [String] the next name in wire format, decompressed, without the final zero
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

        # @return [String] bytes preceded by a length octet, such as one of the strings in a TXT record
        def character_string = bytes(octet)

        def bytes_at(offset, size)
          return @bytes.byteslice(offset, size) if offset + size <= @bytes.bytesize

          raise MalformedError, "the message has #{@bytes.bytesize} bytes, but #{size} are needed at offset #{offset}"
        end

        private

        # Reads a name without pointers, such as the name in a question. Such a name is a contiguous part of the
        # message.
        # @return [Array(String, Integer), nil] the name and the offset after it; nil for a name with a pointer or an
        #   error
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
            raise MalformedError, "the message has over #{MAX_STEPS} labels and pointers" if (@steps += 1) > MAX_STEPS

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
          most = Name::MAX_LABEL
          raise MalformedError, "a label has #{size} bytes, but may have #{most} at most" if size > most

          bytes_at(offset, 1 + size)
        end
      end
    end
  end
end
