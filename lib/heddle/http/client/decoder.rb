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
        ANY_ZLIB = Zlib::MAX_WBITS + 32 # gzip or zlib, by its first bytes
        RAW = -Zlib::MAX_WBITS
        # Bytes that a compressed body may have in addition to twice the limit of its content.
        SLACK = 65_536
        PARTIAL = 206
        # How many members (RFC 1952, 2.2) a body may have even if they have fewer than SMALL_MEMBER bytes on average;
        # an empty one has 20.
        SMALL_MEMBERS = 1_000
        SMALL_MEMBER = 128
        # Bytes passed at once after the first member, because zlib copies the bytes behind a member's end.
        WINDOW = 512
        # Number of windows after which other fibers run.
        WINDOWS_A_TURN = 64
        private_constant :PARTIAL, :KNOWN, :ANY_ZLIB, :RAW, :SLACK, :SMALL_MEMBERS, :SMALL_MEMBER, :WINDOW,
                         :WINDOWS_A_TURN

        # A part of a body (206) is a part of its compressed form (RFC 9110, 14.2), which can't be decoded alone.
        # @param head [H1::ReceivedResponse]
        # @return [Array<String>] the codings of its body, in lower case
        def self.codings(head)
          encoding = Fields.value(head.fields, "content-encoding")
          return [] unless encoding && head.body? && head.status != PARTIAL

          encoding.downcase.split(",").map(&:strip) - ["", "identity"]
        end

        # @param codings [Array<String>]
        # @return [Boolean] can they be decoded?
        def self.known?(codings) = codings.size == 1 && KNOWN.include?(codings.first)

        # @param head [H1::ReceivedResponse]
        # @param request [Request] that has it as its response
        # @param limit [Integer, nil] maximum size of the decoded body in bytes
        # @return [Decoder, nil] nil: nothing is to be decoded
        # @raise [DecodingError] for another encoding than gzip or deflate, and for several at once, unless the caller
        #   has asked for encodings of its own
        def self.for(head, request, limit)
          names = codings(head)
          return new(limit, whole: !head.until_close?) if known?(names)
          return if names.empty? || request.own_encodings?

          raise DecodingError, "the response's Content-Encoding is " \
                               "#{Fields.value(head.fields, "content-encoding").inspect}; the client can decode a " \
                               "single gzip or deflate only"
        end

        # @param whole [Boolean] whether the body's own framing has an end: then it may be empty
        def initialize(limit, whole:)
          @limit = limit
          @whole = whole
          limit_input(limit)
          @size = @taken = @members = @windows = 0
          @open = false
        end

        # @param bytes [Integer, nil] that the decoded body may have
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
          raise DecodingError, "the body does not match its Content-Encoding: #{e.message}"
        end

        # @raise [DecodingError] when the compressed form has no end
        def finish
          unfinished = @open || (@members.zero? && !@whole)
          @inflater&.close
          @inflater = nil
          raise DecodingError, "the compressed body ends too early" if unfinished
        end

        private

        # @return [Integer] how many bytes of the part belong to the member
        def inflate(part)
          begin_member(part) unless @open
          before = @inflater.total_in
          yield
          return part.bytesize unless @inflater.finished?

          used = @inflater.total_in - before
          end_member
          used
        end

        # Small enough to be decoded in place: on an offload thread each call would wait for Ruby's lock.
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

        # Servers send "deflate" with and without zlib's two bytes.
        def window_for(piece)
          first = piece.getbyte(0)
          (first & 0x0f) == 8 || first == 0x1f ? ANY_ZLIB : RAW
        end

        # Limits the compressed bytes, too, because an endless compressed body may have no content.
        def check_input(piece)
          @taken += piece.bytesize
          return unless @input_limit && @taken > (@input_limit * 2) + SLACK

          raise BodyTooLargeError, "the compressed body has more than twice #{@input_limit} bytes (`body_limit`)"
        end

        def count(decoded)
          return if decoded.empty?

          @size += decoded.bytesize
          if @limit && @size > @limit
            raise BodyTooLargeError, "the decompressed body is larger than #{@limit} bytes (`body_limit`): " \
                                     "stream it, and read it in pieces"
          end

          yield decoded
        end

        # A gzip body may have several members.
        def end_member
          @open = false
          @members += 1
          return if @members <= SMALL_MEMBERS || @taken >= @members * SMALL_MEMBER

          raise DecodingError, "the compressed body has #{@members} members in #{@taken} bytes"
        end
      end
    end
  end
end
