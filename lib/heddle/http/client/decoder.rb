# frozen_string_literal: true

require "zlib"

module Heddle
  module HTTP
    class Client
      # Undoes Content-Encoding gzip and deflate (RFC 9110, 8.4.1), with a bound on what comes out.
      #
      # @api private
      class Decoder
        KNOWN = %w[gzip x-gzip deflate].freeze
        ANY_ZLIB = Zlib::MAX_WBITS + 32 # gzip or zlib, by its first bytes
        RAW = -Zlib::MAX_WBITS
        # Bytes by which a compressed body may be larger than its content.
        SLACK = 65_536
        PARTIAL = 206
        private_constant :PARTIAL, :KNOWN, :ANY_ZLIB, :RAW, :SLACK

        # A part of a body (206) is a part of its compressed form (RFC 9110, 14.2), which can't be undone.
        # @param head [H1::ReceivedResponse]
        # @return [Array<String>] the codings of its body, in lower case
        def self.codings(head)
          encoding = Fields.value(head.fields, "content-encoding")
          return [] unless encoding && head.body? && head.status != PARTIAL

          encoding.downcase.split(",").map(&:strip) - ["", "identity"]
        end

        # @param codings [Array<String>]
        # @return [Boolean] are they undone?
        def self.known?(codings) = codings.size == 1 && KNOWN.include?(codings.first)

        # @param head [H1::ReceivedResponse]
        # @param request [Request] that has it as its answer
        # @param limit [Integer, nil] bytes that may come out
        # @return [Decoder, nil] nil: nothing is to be undone
        # @raise [DecodingError] for another encoding than gzip or deflate, and for several at once, unless the caller
        #   has asked for encodings of its own
        def self.for(head, request, limit)
          names = codings(head)
          return new(limit, whole: !head.until_close?) if known?(names)
          return if names.empty? || request.own_encodings?

          raise DecodingError, "the answer's Content-Encoding is " \
                               "#{Fields.value(head.fields, "content-encoding").inspect}; only one can be undone: " \
                               "gzip or deflate"
        end

        # @param whole [Boolean] whether the body's own framing has an end: then it may be empty
        def initialize(limit, whole:)
          @limit = limit
          @whole = whole
          limit_input(limit)
          @size = @taken = 0
          @members = 0
        end

        # @param bytes [Integer, nil] that the body may have without its coding
        # @return [void]
        def limit_input(bytes) = @input_limit = bytes

        # @param exchange [Exchange]
        # @return [String] the whole body
        def read_all(exchange)
          whole = String.new
          while (piece = exchange.read_piece)
            feed(piece) { |decoded| whole << decoded }
          end
          finish
          whole
        end

        # @param piece [String]
        # @yieldparam decoded [String]
        def feed(piece, &)
          take(piece)
          until piece.empty?
            @inflater ||= Zlib::Inflate.new(window_for(piece))
            before = @inflater.total_in
            @inflater.inflate(piece) { |decoded| count(decoded, &) }
            return unless @inflater.finished?

            piece = piece.byteslice((@inflater.total_in - before)..)
            end_member
          end
        rescue Zlib::Error => e
          raise DecodingError, "the body is not what its Content-Encoding says: #{e.message}"
        end

        # @raise [DecodingError] when the compressed form has no end
        def finish
          unfinished = @inflater || (@members.zero? && !@whole)
          @inflater&.close
          @inflater = nil
          raise DecodingError, "the compressed body ends too early" if unfinished
        end

        private

        # Servers send "deflate" with and without zlib's two bytes.
        def window_for(piece)
          first = piece.getbyte(0)
          (first & 0x0f) == 8 || first == 0x1f ? ANY_ZLIB : RAW
        end

        # A compressed body may be endless and yet have nothing in it.
        def take(piece)
          @taken += piece.bytesize
          return unless @input_limit && @taken > (@input_limit * 2) + SLACK

          raise BodyTooLargeError, "the compressed body is much larger than #{@input_limit} bytes (`body_limit`)"
        end

        def count(decoded)
          @size += decoded.bytesize
          if @limit && @size > @limit
            raise BodyTooLargeError, "the decompressed body is larger than #{@limit} bytes (`body_limit`): " \
                                     "stream it, and read it in pieces"
          end

          yield decoded
        end

        # gzip may have several (RFC 1952, 2.2).
        def end_member
          @inflater.close
          @inflater = nil
          @members += 1
        end
      end
    end
  end
end
