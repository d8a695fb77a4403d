# frozen_string_literal: true

require "heddle/rack/read_methods"

module Heddle
  module Rack
    # `rack.input` that reads from the connection while the application runs. It is used with the option
    # `stream_bodies`, and after an upgrade. A read may wait for the client; other fibers run meanwhile. The input can't
    # be rewound. Applications that need `rewind` can use Rack::RewindableInput::Middleware, which stores the bytes.
    class StreamedInput
      include ReadMethods

      # @param body [HTTP::RequestBody]
      def initialize(body)
        @body = body
        @buffer = nil
        @end = false
        @closed = false
      end

      # @return [String] the received bytes, at most `length`; waits only if there are none
      # @raise [EOFError] at the end
      def readpartial(length, buffer = nil)
        check_open
        raise ArgumentError, "negative length #{length} given" if length < 0

        if length > 0 && !fill
          buffer&.clear
          end_of_input
        end
        result = take(length)
        buffer ? buffer.replace(result) : result
      end

      # @return [Boolean] whether everything was read; waits if no bytes are received yet
      def eof?
        check_open
        !fill
      end
      alias eof eof?

      # @param given [Integer, String, nil] a byte or a String, which the next call reads first
      # @return [nil]
      def ungetbyte(given)
        check_open
        bytes = bytes_of(given)
        @buffer = "#{bytes}#{@buffer}".b unless bytes.empty?
        nil
      end
      alias ungetc ungetbyte

      # Closes the input. The rest of the body is not read.
      # @return [nil]
      def close
        @buffer = nil
        @closed = true
        nil
      end

      private

      def take_line(separator, limit)
        return unless fill

        searched = 0
        loop do
          ending = separator && @buffer.byteindex(separator, searched)
          size = ending ? ending + separator.bytesize : @buffer.bytesize
          return take(limit) if limit && size >= limit
          return take(size) if ending

          searched = separator ? [@buffer.bytesize - separator.bytesize + 1, 0].max : 0
          return take(size) unless read_more
        end
      end

      # @return [Boolean] whether bytes are available; false: at the end
      def fill = !@buffer.nil? || read_more

      # Appends the next bytes to the buffer.
      # @return [Boolean] false at the end
      def read_more
        bytes = next_bytes or return false
        @buffer = @buffer ? @buffer << bytes : bytes
        true
      end

      def next_bytes
        return if @end

        bytes = @body.read
        @end = true if bytes.nil?
        bytes
      end

      def read_length(length)
        return "".b if length == 0

        read_more while (@buffer.nil? || @buffer.bytesize < length) && !@end
        take(length) if @buffer
      end

      def read_all
        all = @buffer || next_bytes || "".b
        @buffer = nil
        while (bytes = next_bytes)
          all << bytes
        end
        all
      end

      def take(length)
        return "".b if @buffer.nil?

        if length >= @buffer.bytesize
          taken = @buffer
          @buffer = nil
        else
          taken = @buffer.byteslice(0, length)
          @buffer = @buffer.byteslice(length, @buffer.bytesize)
        end
        taken
      end
    end
  end
end
