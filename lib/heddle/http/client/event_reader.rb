# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # An event of an event stream. `id` is the latest id that the stream has set, in this event or an earlier one.
      Event = Data.define(:type, :data, :id)

      # Reads text/event-stream (WHATWG HTML, 9.2.6).
      #
      # @api private
      class EventReader
        # @return [String] the id of the last complete event, for Last-Event-ID
        attr_reader :last_id
        # @return [Integer, nil] milliseconds before a reconnect; nil: the server has not set it
        attr_reader :retry_after

        # An id with one of these characters is ignored: no header field may contain such a character (RFC 9110, 5.5),
        # so Last-Event-ID can't carry the id. WHATWG HTML excludes only NUL.
        CONTROLS = /[\x00-\x08\x0a-\x1f\x7f]/
        # Values of `retry` of a billion milliseconds (eleven days) or more are ignored as a mistake.
        TIME = /\A\d{1,9}\z/
        private_constant :CONTROLS, :TIME

        def initialize(last_id = "")
          @last_id = @id = last_id
          @buffer = String.new
          @start = 0 # offset of the next line
          @searched = 0 # offset up to which the buffer has no line end
          @data = nil
          @size = 0
          @type = ""
          @begun = false
        end

        # @param piece [String]
        # @yieldparam event [Event]
        # @raise [ProtocolError] when an event is too long
        def feed(piece, &)
          @buffer << (piece.encoding == Encoding::BINARY ? piece : piece.b)
          skip_byte_order_mark or return
          while (line = take_line)
            line.empty? ? dispatch(&) : interpret(line.force_encoding(Encoding::UTF_8).scrub)
          end
          drop_lines
          return if @buffer.bytesize + @size <= Defaults::EVENT_LIMIT

          raise ProtocolError, "an event is longer than #{Defaults::EVENT_LIMIT} bytes"
        end

        private

        def skip_byte_order_mark
          return true if @begun
          return false if @buffer.bytesize < 3 && "\xEF\xBB\xBF".b.start_with?(@buffer)

          @buffer = @buffer.byteslice(3..) if @buffer.start_with?("\xEF\xBB\xBF".b)
          @begun = true
        end

        # Lines end with CR LF, LF or CR; a final CR may be half of a line end.
        def take_line
          ending = @buffer.byteindex(/\r\n|\n|\r(?!\z)/n, @searched)
          unless ending
            @searched = [@buffer.bytesize - 1, @start].max # the last byte may be a CR
            return
          end

          line = @buffer.byteslice(@start, ending - @start)
          @start = @searched = ending + (@buffer.byteslice(ending, 2) == "\r\n" ? 2 : 1)
          line
        end

        # Removes all lines that were read, in one copy of the buffer.
        def drop_lines
          return if @start.zero?

          @buffer = @buffer.byteslice(@start..)
          @searched -= @start
          @start = 0
        end

        def interpret(line)
          name, value = line.split(":", 2)
          value = value.to_s.delete_prefix(" ")
          case name
          when "data" then add(value)
          when "event" then @type = value
          when "id" then @id = value unless value.match?(CONTROLS)
          when "retry" then @retry_after = Integer(value, 10) if value.match?(TIME)
          end
        end

        def add(value)
          @size += value.bytesize + 1
          @data ? @data << "\n" << value : @data = +value
        end

        def dispatch
          @last_id = @id # set only now, so that the server repeats an incomplete event after a reconnect
          event = Event.new(@type.empty? ? "message" : @type, @data, @last_id) if @data
          @data = nil
          @size = 0
          @type = ""
          yield event if event
        end
      end
    end
  end
end
