# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # Reads the parts of a DNS message in order. Whatever is outside of the message or loops is Malformed.
      class MessageReader
        class Malformed < StandardError; end

        MAX_NAME = 254
        # A sane server needs one or two in a name. Each must point further back, but a chain of them through a whole
        # message, for each of its records, would keep the loop busy for seconds.
        MAX_POINTERS = 32
        POINTER = 0xc0
        POINTER_OFFSET = 0x3fff

        # owner [String] wire name in lower case; type [Integer]; ttl [Integer]; offset and length of the data
        Record = Struct.new(:owner, :type, :ttl, :offset, :length) do
          def is?(name, type) = self.type == type && owner == name
        end

        def initialize(bytes, offset)
          @bytes = bytes
          @offset = offset
        end

        # @return [String] wire name in lower case
        def name
          text, @offset = walk(@offset)
          text
        end

        def name_at(offset)
          walk(offset).first
        end

        def unpack(template, size)
          values = bytes_at(@offset, size).unpack(template)
          @offset += size
          values
        end

        def bytes_at(offset, size)
          raise Malformed, "#{size} bytes at #{offset} of #{@bytes.bytesize}" if offset + size > @bytes.bytesize

          @bytes.byteslice(offset, size)
        end

        # @return [Record] of class IN; one of another class has type 0
        def record
          owner = name
          type, klass, ttl, length = unpack("nnNn", 10)
          record = Record.new(owner, klass == Query::IN ? type : 0, ttl, @offset, length)
          bytes_at(@offset, length)
          @offset += length
          record
        end

        private

        # @return [Array(String, Integer)] the name and the offset after it
        def walk(offset)
          text = +"".b
          after = nil
          pointers = 0
          until (size = byte(offset)).zero?
            if size >= POINTER
              target = ((size << 8) | byte(offset + 1)) & POINTER_OFFSET
              pointers += 1
              raise Malformed, "pointer at #{offset}" if target >= offset || pointers > MAX_POINTERS

              after ||= offset + 2
              offset = target
            else
              text << label(offset, size)
              raise Malformed, "name longer than #{MAX_NAME} bytes" if text.bytesize > MAX_NAME

              offset += 1 + size
            end
          end
          [text.downcase, after || (offset + 1)]
        end

        def byte(offset)
          @bytes.getbyte(offset) or raise Malformed, "end of message"
        end

        def label(offset, size)
          raise Malformed, "label of #{size} bytes" if size > Name::MAX_LABEL

          bytes_at(offset, 1 + size)
        end
      end
    end
  end
end
