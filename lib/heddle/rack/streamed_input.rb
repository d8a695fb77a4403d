# frozen_string_literal: true

require "heddle/rack/read_methods"

module Heddle
  module Rack
    # `rack.input` where the option stream_bodies applies, and of a connection after an upgrade: it reads from the
    # connection when the application asks for bytes. Reading may wait, and other fibers run meanwhile. Not rewindable;
    # where an application needs that, Rack::RewindableInput::Middleware keeps the bytes.
    class StreamedInput
      include ReadMethods

      # @param body [HTTP::RequestBody]
      def initialize(body)
        @body = body
        @buffer = nil
        @end = false
        @closed = false
      end

      # @return [String] available bytes, up to a maximum; waits only if there are none
      # @raise [EOFError] at the end
      def readpartial(length, buffer = nil)
        check_open
        raise ArgumentError, "negative length #{length} given" if length < 0

        fill if length > 0
        if length > 0 && @buffer.nil?
          buffer&.clear
          end_of_input
        end
        result = take(length)
        buffer ? buffer.replace(result) : result
      end

      # @return [Boolean] whether all of it was read; waits if there is nothing
      def eof?
        check_open
        !fill
      end
      alias eof eof?

      # @param given [Integer, String, nil] what is read next
      # @return [nil]
      def ungetbyte(given)
        check_open
        bytes = bytes_of(given)
        @buffer = "#{bytes}#{@buffer}".b unless bytes.empty?
        nil
      end
      alias ungetc ungetbyte

      # Called when the rest of the body is not needed.
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

      # @return [Boolean] whether there are bytes
      def fill
        @buffer ||= next_bytes
        !@buffer.nil?
      end

      # Appends the next bytes to those that are there.
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
