# frozen_string_literal: true

module Heddle
  module HTTP
    # HTTP/2 (RFC 9113).
    module H2
      # An exchange over a stream of HTTP/2. The connection has many streams at a time, so the application can't take
      # over the connection.
      class Exchange < HTTP::Exchange
        PIECE = 65_536
        private_constant :PIECE

        # @return [Boolean] whether the client understands interim responses (RFC 9110, section 15.2)
        def interim? = true

        # @return [Boolean] whether the connection can be taken over
        def hijack? = false

        # -- sending: see HTTP::Response

        # @param status [Integer]
        # @param headers [Hash{String => String, Array<String>}]
        # @param length [Integer, nil] bytes of content; nil: unknown
        # @return [ResponseHead] the head, not yet sent
        # @raise [InvalidResponseError]
        def make_head(status, headers, length: nil, **)
          engine.field_writer.head(self, status, headers, length, true, nil, false)
        end

        # @param head [ResponseHead]
        # @return [void]
        # @raise [ClientGoneError]
        def send_head(head) = write_head(head.status, head.bytes, false)

        # @see HTTP::Response#hold
        def hold_head(head) = hold(head.status, head.bytes)

        # @param head [ResponseHead] a head passed to {#hold_head}
        # @return [Boolean] whether the head was withdrawn; false if it was already sent, or if no head was held
        def withdraw_head(_head) = withdraw

        # @param head [ResponseHead]
        # @param chunks [Array<String>]
        # @return [void]
        # @raise [ClientGoneError]
        def send_whole(head, chunks)
          send_head(head)
          chunks.each { |chunk| write(chunk) }
        end

        # @param data [String] not empty
        # @return [void]
        # @raise [ClientGoneError]
        def send_content(data) = write(data)

        # Ends the content and the exchange. The loop sends output that is still queued.
        # @param head [ResponseHead]
        # @return [void]
        # @raise [ClientGoneError]
        def send_end(head) = finish(head.keep_alive, head.status)

        # @param headers [Hash{String => String, Array<String>}]
        # @return [void]
        # @raise [InvalidResponseError]
        # @raise [ClientGoneError]
        def send_early_hints(headers) = write_head(103, engine.field_writer.early_hints(headers), false)

        # Sends 100 Continue for a streamed body. For other bodies, the C extension sends it at once.
        # @return [void]
        # @raise [ClientGoneError]
        def send_continue = write_head(100, "", false)

        # Sends a part of a file.
        # @param file [File]
        # @param offset [Integer] bytes
        # @param length [Integer] bytes
        # @return [void]
        # @raise [ClientGoneError]
        # @raise [EOFError] when the file has fewer bytes
        def send_file(file, offset, length)
          while length > 0
            piece = file.pread([length, PIECE].min, offset)
            write(piece)
            offset += piece.bytesize
            length -= piece.bytesize
          end
        end

        # @return [void]
        def drain = nil

        # Rack's env has this object as `rack.hijack`, which must respond to `call`.
        # @raise [IOError] always, because a request over HTTP/2 can't take over the connection
        def call
          engine.report_hijack(self)
          raise IOError, "a request over HTTP/2 has no connection of its own: rack.hijack is not available"
        end
        alias detach call
      end
    end
  end
end
