# frozen_string_literal: true

module Heddle
  module Rack
    # IO's methods for reading. Applications call them on `rack.input`, because in Puma it is a StringIO or a Tempfile.
    # {Input} and {StreamedInput} include this module. They set +@closed+, and define `readpartial`, `ungetbyte` and the
    # private methods `read_length(length)`, `read_all` and `take_line(separator, limit)`.
    #
    # Strings are binary, as the Rack specification requires, unless {#set_encoding} was called. There is no `to_io` and
    # no file descriptor.
    module ReadMethods
      include Enumerable

      NEWLINE = "\n".b.freeze
      PARAGRAPH = "\n\n".b.freeze
      # The byte order mark of UTF-8.
      MARK = "\xEF\xBB\xBF".b.freeze
      # Maximum number of bytes of a character after its first byte.
      REST_OF_CHARACTER = 3
      private_constant :NEWLINE, :PARAGRAPH, :MARK, :REST_OF_CHARACTER

      # @param length [Integer, nil] maximum number of bytes; nil: read everything
      # @param buffer [String, nil] receives the bytes and is returned
      # @return [String, nil] the bytes; at the end nil if a length was given, otherwise an empty String
      # @raise [IOError] if the input is closed, or the request has ended
      # @raise [ClientGoneError] if the client left before a streamed body was complete
      # @raise [HTTP::BadRequestError] if a streamed body is malformed, too large or too slow
      def read(length = nil, buffer = nil)
        check_open
        raise ArgumentError, "negative length #{length} given" if length && length < 0

        result = length ? read_length(length) : encoded(read_all)
        return result unless buffer

        buffer.replace(result || "")
        result && buffer
      end

      # @param separator [String, Integer, nil] what ends a line; "": read a paragraph; nil: read everything; an Integer
      #   is the limit
      # @param limit [Integer, nil] maximum number of bytes; a character that begins before the limit is read completely
      # @param chomp [Boolean] whether to remove the separator
      # @return [String, nil] the next line; nil at the end
      def gets(separator = NEWLINE, limit = nil, chomp: false)
        check_open
        return special_line(separator, limit, chomp) unless limit.nil? && NEWLINE.equal?(separator)

        line = take_line(NEWLINE, nil) or return
        @lineno = (@lineno || 0) + 1
        line.force_encoding(@encoding) if @encoding
        chomp ? line.tap(&:chomp!) : line
      end

      # @return [String] the next line
      # @raise [EOFError] at the end
      def readline(...) = gets(...) || end_of_input

      # Yields the remaining lines. The parameters are those of {#gets}.
      # @yieldparam line [String]
      # @return [self, Enumerator]
      def each(*arguments, **options)
        return to_enum(:each, *arguments, **options) unless block_given?
        raise ArgumentError, "invalid limit: 0" if arguments.last == 0

        while (line = gets(*arguments, **options))
          yield line
        end
        self
      end
      alias each_line each

      # @return [Array<String>] the remaining lines
      def readlines(*, **) = each(*, **).to_a

      # @param number [Integer] the new number of lines
      attr_writer :lineno

      # @return [Integer] how many lines were read
      def lineno = @lineno || 0

      # @return [Integer, nil] the next byte; nil at the end
      def getbyte = read(1)&.getbyte(0)

      # @return [Integer] the next byte
      # @raise [EOFError] at the end
      def readbyte = getbyte || end_of_input

      # @yieldparam byte [Integer]
      # @return [self, Enumerator]
      def each_byte(&) = each_piece(:each_byte, :getbyte, &)

      # @return [String, nil] the next character, which is a single byte unless {#set_encoding} was called; nil at the
      #   end
      def getc
        character = read(1) or return
        complete(encoded(character))
      end

      # @return [String] the next character
      # @raise [EOFError] at the end
      def readchar = getc || end_of_input

      # @yieldparam character [String]
      # @return [self, Enumerator]
      def each_char(&) = each_piece(:each_char, :getc, &)

      # @yieldparam number [Integer] the codepoint of a character
      # @return [self, Enumerator]
      # @raise [ArgumentError] if the bytes are not a character
      def each_codepoint
        return to_enum(:each_codepoint) unless block_given?

        each_char { |character| yield character.ord }
      end

      # The same as {#readpartial}. There is no unbuffered read.
      def sysread(...) = readpartial(...)

      # @param exception [Boolean] whether to raise EOFError at the end
      # @return [String, nil] see {#readpartial}; nil at the end if `exception` is false
      def read_nonblock(length, buffer = nil, exception: true)
        readpartial(length, buffer)
      rescue EOFError
        raise if exception
      end

      # @param external [Encoding, String, nil] the encoding of lines, characters and of {#read} without a length. With
      #   the prefix "BOM|" it is UTF-8 instead if the content begins with UTF-8's byte order mark
      # @return [self]
      def set_encoding(external, *, **)
        name = external.is_a?(String) ? external.sub(/\ABOM\|/i, "")[/[^:]+/] : external
        @encoding = name && Encoding.find(name)
        set_encoding_by_bom if external.to_s.match?(/\ABOM\|/i)
        self
      end

      # @return [Encoding, nil] UTF-8 if the content begins with its byte order mark, which is skipped; nil otherwise
      def set_encoding_by_bom
        mark = read(MARK.bytesize)
        return @encoding = Encoding::UTF_8 if mark == MARK

        ungetbyte(mark)
      end

      # @return [Encoding] the encoding of lines and characters
      def external_encoding = @encoding || Encoding::BINARY

      # @return [nil] encodings are never converted
      def internal_encoding = nil

      # @return [self]
      def binmode
        @encoding = nil if @encoding
        self
      end

      # @return [Boolean]
      def closed? = @closed

      # @return [nil] there is no file descriptor
      def fileno = nil

      # @return [false]
      def tty? = false
      alias isatty tty?

      # @return [true]
      def sync = true

      # @return [Boolean] the argument, which has no effect
      def sync=(_sync); end

      private

      def each_piece(name, getter)
        return to_enum(name) unless block_given?

        while (piece = public_send(getter))
          yield piece
        end
        self
      end

      def special_line(separator, limit, chomp)
        separator, limit = NEWLINE, separator unless separator.nil? || separator.is_a?(String)
        return encoded(String.new) if limit == 0

        line = next_line(separator, limit&.negative? ? nil : limit) or return
        @lineno = lineno + 1
        encoded(line)
        line = complete(line) if limit
        chomp && separator ? chomped(line, separator) : line
      end

      def next_line(separator, limit)
        return take_line(separator&.b, limit) unless separator == ""

        skip_newlines
        take_line(PARAGRAPH, limit)&.tap { |paragraph| skip_newlines if paragraph.end_with?(PARAGRAPH) }
      end

      def skip_newlines
        while (byte = getbyte)
          return ungetbyte(byte) unless byte == 10
        end
      end

      def encoded(string) = @encoding ? string.force_encoding(@encoding) : string

      # If the string ends within a character, reads its remaining bytes and appends them. If they form no valid
      # character, the string is returned unchanged.
      def complete(string)
        return string if @encoding.nil? || string.empty? || string[-1].valid_encoding?

        whole = string.b
        REST_OF_CHARACTER.times do
          byte = read(1) or break
          found = (whole << byte).dup.force_encoding(@encoding)
          return found if found.length == string.length && found[-1].valid_encoding?
        end
        ungetbyte(whole.byteslice(string.bytesize, REST_OF_CHARACTER))
        string
      end

      def chomped(line, separator)
        line.chomp!(separator.ascii_only? ? separator : separator.dup.force_encoding(line.encoding))
        line
      end

      def bytes_of(given) = given.is_a?(Integer) ? (given & 0xff).chr : given.to_s.b

      def check_open
        raise IOError, "the request's body is closed" if @closed
      end

      def end_of_input = raise(EOFError, "end of the request's body")
    end
  end
end
