# frozen_string_literal: true

require "heddle/rack/binary_input"

module Heddle
  module Rack
    # `rack.input`: the request's body, which is complete before the application is called. It is read in place, from
    # memory or a file: no call waits for the client, calls a hook of the fiber scheduler, or lets another fiber run. So
    # a native library may read it in a callback.
    class Input
      include BinaryInput

      LINE_END = "\n".b.freeze
      private_constant :LINE_END

      # @return [Integer] bytes that were read
      attr_reader :pos
      alias tell pos

      # @param content [String, HTTP::SpooledBody] the whole body; a String is binary and belongs to this object
      def initialize(content)
        @content = content
        @pos = 0
        @closed = false
      end

      # @param length [Integer, nil] bytes, or nil for everything
      # @param buffer [String, nil] filled and returned in place of a new string
      # @return [String, nil] binary; at the end nil when a length was given, else empty
      # @raise [IOError] when it is closed, or the request is over
      def read(length = nil, buffer = nil)
        check_open
        raise ArgumentError, "negative length #{length} given" if length && length < 0

        result = take(length || @content.bytesize) unless length && length > 0 && eof?
        return result unless buffer

        buffer.replace(result || "")
        result && buffer
      end

      # @return [String] what there is, up to a number of bytes
      # @raise [EOFError] at the end
      def readpartial(length, buffer = nil)
        read(length, buffer) || raise(EOFError, "end of the request's body")
      end

      # @return [String, nil] the next line with its line end; nil at the end
      def gets
        check_open
        return if eof?

        ending = @content.byteindex(LINE_END, @pos)
        take(ending ? ending + 1 - @pos : @content.bytesize)
      end

      # Reads from the beginning again.
      # @return [0]
      def rewind
        check_open
        @pos = 0
      end

      # @return [Boolean] whether all of it was read
      def eof?
        check_open
        @pos >= @content.bytesize
      end

      # @return [Integer] bytes of the whole body
      def size
        check_open
        @content.bytesize
      end

      # The body is not needed any more.
      # @return [nil]
      def close
        @content = nil
        @closed = true
        nil
      end

      private

      def take(length)
        bytes = @content.byteslice(@pos, length) || "".b
        @pos += bytes.bytesize
        bytes
      end
    end
  end
end
