# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # A response's body that the application reads piece by piece.
      #
      # @api private
      class Body
        # @param exchange [Exchange]
        # @param decoder [Decoder, nil]
        # @param limit [Integer] maximum number of bytes that {#read} returns
        def initialize(exchange, decoder, limit)
          @exchange = exchange
          @decoder = decoder
          @limit = limit
        end

        # @return [Array<String>, nil] field names in lower case and values, alternating
        def trailers = @exchange.trailers

        # @yieldparam piece [String]
        def each(&block)
          while (piece = @exchange.read_piece)
            @decoder ? @decoder.feed(piece, &block) : yield(piece)
          end
          @decoder&.finish
        end

        # @return [String]
        # @raise [BodyTooLargeError]
        def read
          whole = String.new
          @decoder&.limit_input(@limit)
          each do |piece|
            if whole.bytesize + piece.bytesize > @limit
              raise BodyTooLargeError, "the body is larger than #{@limit} bytes (`body_limit`): read it in pieces, " \
                                       "by `each`"
            end

            whole << piece
          end
          whole
        end
      end
    end
  end
end
