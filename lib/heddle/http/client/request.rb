# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # One request to one origin; a redirect makes another one.
      class Request
        # They may be sent twice with the effect of once (RFC 9110, 9.2.2).
        IDEMPOTENT = %w[GET HEAD PUT DELETE OPTIONS TRACE].freeze
        # Bytes of a body that are read at once.
        PIECE = 65_536
        private_constant :IDEMPOTENT, :PIECE

        # @return [String]
        attr_reader :method
        # @return [Origin]
        attr_reader :origin
        # @return [String] path and query
        attr_reader :target
        # @return [String] the field lines that the user has a say in, of the body's framing too
        attr_reader :lines
        # @return [String, #read, #each, nil]
        attr_reader :body

        def initialize(method, origin, target, lines, body)
          @method = method
          @origin = origin
          @target = target
          @lines = lines
          @body = body
          @start = self.class.position_of(body)
        end

        def idempotent? = IDEMPOTENT.include?(@method)

        # Can the body be sent again?
        def replayable? = @body.nil? || @body.is_a?(String) || @body.is_a?(Array) || !@start.nil?

        # What goes first: the head, and a body that is there.
        # @return [String, Array<String>]
        def opening
          head = "#{@method} #{@origin.request_target(@target)} HTTP/1.1\r\n#{@lines}\r\n"
          @body.is_a?(String) && !@body.empty? ? [head, @body] : head
        end

        # Whether more follows the opening.
        def streams_body? = !(@body.nil? || @body.is_a?(String))

        # The rest of the body, framed.
        # @yieldparam piece [String, Array<String>]
        # @raise [IOError] when an IO has another size than it said
        def each_piece(&)
          @body.seek(@start) if @start
          size = self.class.size_of(@body)
          size ? each_sized(size, &) : each_chunk(&)
        end

        # @return [Integer, nil] nil: it is sent in chunks
        def self.size_of(body)
          return body.bytesize if body.respond_to?(:bytesize)

          body.size - (position_of(body) || 0) if body.respond_to?(:read) && body.respond_to?(:size)
        end

        # @return [Integer, nil] where an IO stands, if it can come back there
        def self.position_of(body)
          body.pos if body.respond_to?(:pos) && body.respond_to?(:seek)
        rescue SystemCallError
          nil # a pipe
        end

        private

        def each_sized(size)
          left = size
          while left.positive?
            piece = @body.read([left, PIECE].min)
            raise IOError, "the body ended #{left} bytes before its size (#{size})" if piece.nil? || piece.empty?

            left -= piece.bytesize
            yield piece
          end
        end

        def each_chunk
          pieces do |piece|
            yield [piece.bytesize.to_s(16), "\r\n", piece, "\r\n"] unless piece.empty?
          end
          yield "0\r\n\r\n"
        end

        def pieces(&block)
          return @body.each(&block) unless @body.respond_to?(:read)

          while (piece = @body.read(PIECE)) && !piece.empty?
            yield piece
          end
        end
      end
    end
  end
end
