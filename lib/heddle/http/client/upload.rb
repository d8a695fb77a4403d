# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # A body that is read while it is sent. Its size is determined once. If a file grows meanwhile, the client sends
      # only as many bytes as Content-Length announces. If the file shrinks, the client raises IOError.
      #
      # @api private
      class Upload
        # Number of bytes to read at once.
        PIECE = 65_536
        private_constant :PIECE

        # @return [Integer, nil] the body's size in bytes; nil if it is unknown: then the body is sent in chunks
        attr_reader :size
        # @return [#read, #each]
        attr_reader :source

        # @param source [#read, #each] an IO is read from the position that it has now, also when the body is sent again
        def initialize(source)
          @source = source
          @start = position
          @size = [source.size - (@start || 0), 0].max if source.respond_to?(:read) && source.respond_to?(:size)
        end

        # Can the body be sent again?
        def replayable? = @source.is_a?(Array) || !@start.nil?

        # The body, framed for HTTP/1.1.
        # @yieldparam piece [String, Array<String>]
        # @raise [IOError] when an IO ends before its size
        def each_piece(&)
          return each_data(&) if @size

          each_data do |piece|
            yield [piece.bytesize.to_s(16), "\r\n", piece, "\r\n"] unless piece.empty?
          end
          yield "0\r\n\r\n"
        end

        # The body, unframed.
        # @yieldparam piece [String]
        # @raise [IOError] when an IO ends before its size
        # @return [Boolean] true
        def each_data(&)
          @source.seek(@start) if @start
          @size ? each_sized(&) : pieces(&)
          true
        end

        private

        # The position of an IO that can be rewound, otherwise nil.
        def position
          @source.pos if @source.respond_to?(:pos) && @source.respond_to?(:seek)
        rescue SystemCallError
          nil # the source can't be rewound, for example because it is a pipe
        end

        def each_sized
          left = @size
          while left.positive?
            piece = @source.read([left, PIECE].min)
            raise IOError, "the body ended #{left} bytes short of its size (#{@size})" if piece.nil? || piece.empty?
            raise IOError, "the body object's `read` returned more bytes than requested" if piece.bytesize > left

            left -= piece.bytesize
            yield piece
          end
        end

        def pieces(&block)
          return @source.each(&block) unless @source.respond_to?(:read)

          while (piece = @source.read(PIECE)) && !piece.empty?
            yield piece
          end
        end
      end
    end
  end
end
