# frozen_string_literal: true

require "strscan"

module Heddle
  module HTTP
    module H1
      # Takes a chunked body out of the bytes of a connection (RFC 9112, 7.1). Extensions are ignored, trailers
      # are checked and thrown away.
      class ChunkedDecoder
        SIZE_LINE = /\G(\h{1,16})(?:[ \t]*(;[^\x00-\x08\x0A-\x1F\x7F]*))?\r\n/n
        PARTIAL_SIZE_LINE = /\G(?:\h{1,16}(?:[ \t]*(?:;[^\x00-\x08\x0A-\x1F\x7F]*)?)?)?\r?\z/n
        LINE_END = "\r\n".b.freeze
        SECTION_END = "\r\n\r\n".b.freeze
        # Digits, white space before the extension and the line end.
        SIZE_LINE_ROOM = 64
        CR = 13
        LF = 10
        private_constant :SIZE_LINE, :PARTIAL_SIZE_LINE, :LINE_END, :SECTION_END, :SIZE_LINE_ROOM, :CR, :LF

        # @return [Refusal, nil] what is wrong, once something is
        attr_reader :refusal

        # @param configuration [Configuration]
        # @param header_bytes [Integer] size of the header lines of the head: trailers count on from there
        # @param header_count [Integer] number of header lines of the head
        def initialize(configuration, header_bytes: 0, header_count: 0)
          @configuration = configuration
          @header_bytes = header_bytes
          @header_count = header_count
          @state = :size
          @remaining = 0
          @data = 0
          @framing = 0
          @extensions = 0
          @refusal = nil
        end

        # @return [Boolean] whether the body and its trailers are complete
        def done? = @state == :done

        # @return [nil] it is not known how much is to come
        def remaining = nil

        # @param buffer [String] binary
        # @param position [Integer] where undecoded bytes start in it
        # @param output [String] binary; the body's bytes are appended
        # @return [Integer] position of the first byte that is not part of the body, or not decoded yet
        def decode(buffer, position, output)
          loop do
            before = position
            state = @state
            case state
            when :size then position = size_line(buffer, position)
            when :data then position = data(buffer, position, output)
            when :data_end then position = data_end(buffer, position)
            when :trailers then position = trailers(buffer, position)
            else return position
            end
            return position if @refusal || (position == before && state == @state)
          end
        end

        private

        def size_line(buffer, position)
          match = SIZE_LINE.match(buffer, position)
          return partial_size_line(buffer, position) unless match

          ending = match.end(0)
          @extensions += match[2].bytesize if match[2]
          @framing += ending - position + 2
          return refuse(position, 400, "the chunk extensions of the body are too long") if long_extensions?

          size = match[1].to_i(16)
          if size == 0
            @state = :trailers
            return ending
          end

          @data += size
          return refuse(position, 413, "the body is larger than #{@configuration.body_limit} bytes") if over_limit?
          return refuse(position, 400, "the framing of the body outweighs its data") if outweighed?

          @remaining = size
          @state = :data
          ending
        end

        def partial_size_line(buffer, position)
          return refuse(position, 400, "a chunk's size is malformed") unless PARTIAL_SIZE_LINE.match?(buffer, position)

          length = buffer.bytesize - position
          if length > SIZE_LINE_ROOM + @configuration.chunk_extension_limit - @extensions
            return refuse(position, 400, "the chunk extensions of the body are too long")
          end

          position
        end

        def data(buffer, position, output)
          available = buffer.bytesize - position
          available = @remaining if available > @remaining
          output << buffer.byteslice(position, available)
          @remaining -= available
          @state = :data_end if @remaining == 0
          position + available
        end

        def data_end(buffer, position)
          first = buffer.getbyte(position)
          return position if first.nil?
          return refuse(position, 400, "a chunk does not end where its size says") unless first == CR

          second = buffer.getbyte(position + 1)
          return position if second.nil?
          return refuse(position, 400, "a chunk does not end where its size says") unless second == LF

          @state = :size
          position + 2
        end

        def trailers(buffer, position)
          if buffer.getbyte(position) == CR && buffer.getbyte(position + 1) == LF
            @state = :done
            return position + 2
          end
          ending = buffer.byteindex(SECTION_END, position)
          length = (ending ? ending + 4 : buffer.bytesize) - position
          if @header_bytes + length > @configuration.header_limit
            return refuse(position, 431, "the header and trailer lines are longer than " \
                                         "#{@configuration.header_limit} bytes together")
          end
          return partial_trailers(buffer, position) unless ending

          fault = trailer_fault(buffer.byteslice(position, length))
          return refuse(position, fault.status, fault.reason) if fault

          @state = :done
          ending + 4
        end

        def partial_trailers(buffer, position)
          return position unless Fault::STRAY_OR_FOLD.match?(buffer, position)

          fault = Fault.stray(buffer.byteslice(position, buffer.bytesize))
          refuse(position, fault.status, fault.reason)
        end

        def trailer_fault(section)
          fields = FieldParser.new(@configuration).parse(StringScanner.new(section))
          return fields if fields.is_a?(Refusal)
          return if @header_count + (fields.size / 2) <= @configuration.header_count

          Refusal.new(431, "the request has more than #{@configuration.header_count} header and trailer lines")
        end

        def long_extensions? = @extensions > @configuration.chunk_extension_limit

        def over_limit? = @data > @configuration.body_limit

        def outweighed? = @framing > @data + @configuration.chunk_overhead_limit

        def refuse(position, status, reason)
          @refusal = Refusal.new(status, reason)
          position
        end
      end
    end
  end
end
