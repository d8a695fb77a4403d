# frozen_string_literal: true

require "heddle/rack/read_methods"

module Heddle
  module Rack
    # `rack.input` with a body that is complete before the application is called. Reads come from memory or a file. They
    # never wait for the client, and call no hook of the fiber scheduler, so no other fiber runs meanwhile. Therefore
    # even a native library may read the body in a callback.
    class Input
      include ReadMethods

      # @return [Integer] the position: how many bytes are before it
      attr_reader :pos
      alias tell pos

      # @param content [String, HTTP::SpooledBody] the whole body; a String must be binary, and belongs to this object
      #   from now on
      def initialize(content)
        @content = content
        @pos = 0
        @closed = false
      end

      # @return [String] at most `length` bytes
      # @raise [EOFError] at the end
      def readpartial(length, buffer = nil) = read(length, buffer) || end_of_input

      # Reads at an offset, and does not change the position.
      # @param length [Integer] number of bytes
      # @param offset [Integer] where they begin, in bytes
      # @return [String] the bytes; fewer at the end
      # @raise [EOFError] if the offset is at the end or beyond it
      def pread(length, offset, buffer = nil)
        check_open
        raise ArgumentError, "negative string size (or size too big)" if length < 0
        raise Errno::EINVAL, "before the beginning of the request's body" if offset < 0

        end_of_input if length > 0 && offset >= @content.bytesize
        bytes = @content.byteslice(offset, length) || "".b
        buffer ? buffer.replace(bytes) : bytes
      end

      # @param given [Integer, String, nil] a byte or a String. Must be the bytes that were read last, because the
      #   content can't be changed.
      # @return [nil]
      def ungetbyte(given)
        check_open
        return if given.nil?

        bytes = bytes_of(given)
        start = @pos - bytes.bytesize
        if start < 0 || @content.byteslice(start, bytes.bytesize) != bytes
          raise IOError, "only the bytes that were read last can be pushed back"
        end

        @pos = start
        nil
      end
      alias ungetc ungetbyte

      # Sets the position to the beginning.
      # @return [0]
      def rewind
        check_open
        @lineno = 0 if @lineno
        @pos = 0
      end

      # @param offset [Integer] bytes
      # @param whence [Integer, Symbol] see IO#seek
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

      # @return [Boolean] whether the position is at the end
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

      # Closes the input, and frees the body.
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

      # Finds the next separator. Called for a separator of several bytes.
      def index(separator)
        return @content.byteindex(separator, @pos) if @content.is_a?(String)

        # HTTP::SpooledBody can search only for single bytes.
        at = @pos - 1
        while (at = @content.byteindex(separator.byteslice(0, 1), at + 1))
          return at if @content.byteslice(at, separator.bytesize) == separator
        end
      end
    end
  end
end
