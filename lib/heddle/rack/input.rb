# frozen_string_literal: true

require "heddle/rack/read_methods"

module Heddle
  module Rack
    # `rack.input`: the request's body, which is complete before the application is called. It is read in place, from
    # memory or a file: no call waits for the client, calls a hook of the fiber scheduler, or lets another fiber run. So
    # a native library may read it in a callback.
    class Input
      include ReadMethods

      # @return [Integer] bytes that were read
      attr_reader :pos
      alias tell pos

      # @param content [String, HTTP::SpooledBody] the whole body; a String is binary and belongs to this object
      def initialize(content)
        @content = content
        @pos = 0
        @closed = false
      end

      # @return [String] available bytes, up to a maximum
      # @raise [EOFError] at the end
      def readpartial(length, buffer = nil) = read(length, buffer) || end_of_input

      # @param length [Integer] bytes
      # @param offset [Integer] where they begin
      # @return [String] these bytes; the position does not change
      # @raise [EOFError] beyond the end
      def pread(length, offset, buffer = nil)
        check_open
        raise ArgumentError, "negative string size (or size too big)" if length < 0
        raise Errno::EINVAL, "before the beginning of the request's body" if offset < 0

        end_of_input if length > 0 && offset >= @content.bytesize
        bytes = @content.byteslice(offset, length) || "".b
        buffer ? buffer.replace(bytes) : bytes
      end

      # @param given [Integer, String, nil] the bytes that were read last; others can't be pushed back
      # @return [nil]
      def ungetbyte(given)
        check_open
        return if given.nil?

        bytes = bytes_of(given)
        start = @pos - bytes.bytesize
        if start < 0 || @content.byteslice(start, bytes.bytesize) != bytes
          raise IOError, "only the bytes read last can be put back"
        end

        @pos = start
        nil
      end
      alias ungetc ungetbyte

      # Reads from the beginning again.
      # @return [0]
      def rewind
        check_open
        @lineno = 0 if @lineno
        @pos = 0
      end

      # @param offset [Integer] bytes
      # @param whence [Integer, Symbol] as IO#seek takes it
      # @return [0]
      def seek(offset, whence = IO::SEEK_SET)
        check_open
        base = case whence
               when IO::SEEK_SET, :SET then 0
               when IO::SEEK_CUR, :CUR then @pos
               when IO::SEEK_END, :END then @content.bytesize
               else raise Errno::EINVAL, "seek from #{whence.inspect}"
               end
        raise Errno::EINVAL, "before the beginning of the request's body" if base + offset < 0

        @pos = base + offset
        0
      end

      # @param position [Integer] bytes from the beginning
      def pos=(position)
        seek(position)
      end

      # @return [Boolean] whether all of it was read
      def eof?
        check_open
        @pos >= @content.bytesize
      end
      alias eof eof?

      # @return [Integer] bytes of the whole body
      def size
        check_open
        @content.bytesize
      end
      alias length size

      # Called when the body is no longer needed.
      # @return [nil]
      def close
        @content = nil
        @closed = true
        nil
      end

      private

      def read_length(length) = length > 0 && eof? ? nil : take(length)

      def read_all = take(@content.bytesize)

      def take(length)
        bytes = @content.byteslice(@pos, length) || "".b
        @pos += bytes.bytesize
        bytes
      end

      def take_line(separator, limit)
        return if @pos >= @content.bytesize
        return take(length_of_line(@content.byteslice(@pos, limit), separator)) if limit

        ending = separator && (separator.bytesize == 1 ? @content.byteindex(separator, @pos) : index(separator))
        take(ending ? ending + separator.bytesize - @pos : @content.bytesize)
      end

      def length_of_line(piece, separator)
        ending = separator && piece.byteindex(separator)
        ending ? ending + separator.bytesize : piece.bytesize
      end

      # The index of the next separator of several bytes.
      def index(separator)
        return @content.byteindex(separator, @pos) if @content.is_a?(String)

        # A file can be searched for one byte only.
        at = @pos - 1
        while (at = @content.byteindex(separator.byteslice(0, 1), at + 1))
          return at if @content.byteslice(at, separator.bytesize) == separator
        end
      end
    end
  end
end
