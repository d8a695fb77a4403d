# frozen_string_literal: true

require "zlib"

module Heddle
  module HTTP
    class Client
      # Decodes the Content-Encodings gzip and deflate (RFC 9110, 8.4.1), and limits the size of the result.
      #
      # @api private
      class Decoder
        KNOWN = %w[gzip x-gzip deflate].freeze
        ANY_ZLIB = Zlib::MAX_WBITS + 32 # zlib detects the gzip or zlib format by the first bytes
        RAW = -Zlib::MAX_WBITS
        # The compressed body may have twice as many bytes as the limit for the decoded body, plus this number.
        SLACK = 65_536
        PARTIAL = 206
        # A gzip body with more members (RFC 1952, 2.2) than SMALL_MEMBERS is rejected if its members have fewer than
        # SMALL_MEMBER bytes on average. An empty member has 20 bytes.
        SMALL_MEMBERS = 1_000
        SMALL_MEMBER = 128
        # Bytes passed to zlib at once after the first member. Small, because zlib copies the bytes behind a member's
        # end.
        WINDOW = 512
        # Number of windows after which the decoder lets other fibers run.
        WINDOWS_A_TURN = 64
        private_constant :PARTIAL, :KNOWN, :ANY_ZLIB, :RAW, :SLACK, :SMALL_MEMBERS, :SMALL_MEMBER, :WINDOW,
                         :WINDOWS_A_TURN

        # Returns the content codings of a body. For the status 206 returns none, because a part of a compressed body
        # can't be decoded alone (RFC 9110, 14.2).
        # @param head [H1::ReceivedResponse]
        # @return [Array<String>] the codings, in lower case, without `identity`
        def self.codings(head)
          encoding = Fields.value(head.fields, "content-encoding")
          return [] unless encoding && head.body? && head.status != PARTIAL

          encoding.downcase.split(",").map(&:strip) - ["", "identity"]
        end

        # @param codings [Array<String>]
        # @return [Boolean] whether this class can decode them
        def self.known?(codings) = codings.size == 1 && KNOWN.include?(codings.first)

        # @param head [H1::ReceivedResponse]
        # @param request [Request] the request that this response belongs to
        # @param limit [Integer, nil] maximum size of the decoded body in bytes
        # @return [Decoder, nil] nil: the body needs no decoding
        # @raise [DecodingError] for an encoding other than gzip and deflate, or several encodings, unless the request
        #   has an Accept-Encoding field of the caller
        def self.for(head, request, limit)
          names = codings(head)
          return new(limit, whole: !head.until_close?) if known?(names)
          return if names.empty? || request.own_encodings?

          raise DecodingError, "the response's Content-Encoding is " \
                               "#{Fields.value(head.fields, "content-encoding").inspect}; the client can decode " \
                               "gzip or deflate, but not several encodings"
        end

        # @param whole [Boolean] whether HTTP's framing marks the end of the body; such a body may be empty
        def initialize(limit, whole:)
          @limit = limit
          @whole = whole
          limit_input(limit)
          @size = @taken = @members = @windows = 0
          @open = false
        end

        # @param bytes [Integer, nil] maximum size of the decoded body; limits the compressed body, see SLACK
        # @return [void]
        def limit_input(bytes) = @input_limit = bytes

        # @param piece [String]
        # @yieldparam decoded [String]
        def feed(piece, &)
          return if piece.empty?

          check_input(piece)
          at = @members.zero? ? inflate(piece) { @inflater.inflate(piece) { |decoded| count(decoded, &) } } : 0
          at += inflate_window(piece.byteslice(at, WINDOW), &) while at < piece.bytesize
        rescue Zlib::Error => e
          raise if @yielding # the caller's block has raised it

          raise DecodingError, "the body does not match its Content-Encoding: #{e.message}"
        end

        # @raise [DecodingError] if the compressed data ends too early
        def finish
          unfinished = @open || (@members.zero? && !@whole)
          @inflater&.close
          @inflater = nil
          raise DecodingError, "the compressed body ends too early" if unfinished
        end

        private

        # @return [Integer] number of bytes of the part that belong to the current gzip member
        def inflate(part)
          begin_member(part) unless @open
          before = @inflater.total_in
          yield
          return part.bytesize unless @inflater.finished?

          used = @inflater.total_in - before
          end_member
          used
        end

        # `Fiber.blocking` keeps this call on the loop's thread. A window is short, and offloading would cost a wait for
        # the GVL.
        def inflate_window(part, &)
          sleep(0) if ((@windows += 1) % WINDOWS_A_TURN).zero?
          inflate(part) { count(Fiber.blocking { @inflater.inflate(part) }, &) }
        end

        def begin_member(part)
          window = window_for(part)
          if window == @window
            @inflater.reset
          else
            @inflater&.close
            @inflater = Zlib::Inflate.new(@window = window)
          end
          @open = true
        end

        # Servers send "deflate" both with and without zlib's two-byte header.
        def window_for(piece)
          first = piece.getbyte(0)
          (first & 0x0f) == 8 || first == 0x1f ? ANY_ZLIB : RAW
        end

        # Limits the compressed bytes, too, because an endless compressed body may decode to nothing.
        def check_input(piece)
          @taken += piece.bytesize
          return unless @input_limit && @taken > (@input_limit * 2) + SLACK

          raise BodyTooLargeError, "the compressed body is too large for a `body_limit` of #{@input_limit} bytes"
        end

        def count(decoded)
          return if decoded.empty?

          @size += decoded.bytesize
          if @limit && @size > @limit
            raise BodyTooLargeError, "the decompressed body is larger than #{@limit} bytes (`body_limit`): " \
                                     "stream it, and read it in pieces"
          end

          @yielding = true
          yield decoded
          @yielding = false
        end

        # A gzip body may have several members.
        def end_member
          @open = false
          @members += 1
          return if @members <= SMALL_MEMBERS || @taken >= @members * SMALL_MEMBER

          raise DecodingError, "the compressed body has too many gzip members: #{@members} in #{@taken} bytes"
        end
      end
    end
  end
end
