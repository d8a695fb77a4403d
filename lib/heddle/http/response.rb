# frozen_string_literal: true

module Heddle
  module HTTP
    # Sends one response. Never sends more content than the response's head announces. The {Exchange} does the framing.
    class Response
      # Bytes of a file to send in one step. {#sent} is updated after each step.
      FILE_STEP = 1_048_576
      # The limits for decoding content that the application has already chunked.
      UNLIMITED = Limits.new(body_limit: 1 << 50, chunk_overhead_limit: 1 << 50)
      private_constant :FILE_STEP, :UNLIMITED

      # @return [Integer, nil] the status, once the head is made
      attr_reader :status
      # @return [Float, nil] seconds from the beginning of the exchange until the head was made
      attr_reader :begun_after
      # @return [String, nil] how the content differs from what the head announces: its length, or a missing last
      #   chunk; nil: no difference was found
      attr_reader :violation

      # @param exchange [Exchange]
      def initialize(exchange)
        @exchange = exchange
        @head = @unsent = @held = nil
        @status = @begun_after = nil
        @sent = 0
        @promised = nil
        @precoded = nil
        @finished = false
        @broken_off = false
        @violation = nil
      end

      # @return [Integer] number of content bytes sent
      def sent = @sent + @exchange.content_sent

      # @return [Boolean] whether the head is made. {#withdraw} can discard it until it is sent
      def started? = !@status.nil?

      # @return [Boolean] whether this object is done with the response
      def finished? = @finished

      # @return [Boolean] whether all content that the head announced was sent
      def complete? = @finished && !@broken_off

      # @return [Boolean] whether the response has no content, for example after HEAD or with status 304
      def bodiless? = @framing == :none

      # @return [Boolean] whether the connection changes to another protocol, so that the application reads and writes
      #   raw bytes
      def raw? = @framing == :raw

      # Sends a 103 interim response. Does nothing if the client does not understand interim responses, or if the final
      # response has begun.
      # @param headers [Hash]
      # @raise [InvalidResponseError]
      # @raise [ClientGoneError]
      def early_hints(headers)
        @exchange.send_early_hints(headers) if @exchange.interim? && !started?
      end

      # Makes the head. It is sent with the first content, or by {#flush} or {#finish}.
      # @param status [Integer]
      # @param headers [Hash{String => String, Array<String>}]
      # @param length [Integer, nil] bytes of content; nil: unknown
      # @param protocol [String, nil] the protocol to upgrade to
      # @param until_close [Boolean] whether content of unknown length is sent unframed and ends with the connection
      # @raise [InvalidResponseError]
      def start(status, headers, length: nil, protocol: nil, until_close: false)
        head = @exchange.make_head(status, headers, length:, protocol:, until_close:)
        @status = head.status
        @begun_after = @exchange.age
        @framing = head.framing
        @promised = head.length if @framing == :length
        @precoded = H1::ChunkedDecoder.new(UNLIMITED) if head.precoded && @framing != :none
        @head = @unsent = head
        @exchange.body&.answered
      end

      # Sends the head now, without waiting for content.
      # @raise [InvalidResponseError]
      # @raise [ClientGoneError]
      def flush
        if @unsent
          @unsent = nil
          @exchange.send_head(@head)
        elsif @held
          @held = nil
          @exchange.release_head
        end
      rescue InvalidResponseError
        keep_unsent
        raise
      end

      # Lets the loop send the head in its next tick, which begins when this fiber waits or has used up its time slice.
      # Until then {#withdraw} can discard the head.
      # @raise [InvalidResponseError]
      def hold
        return unless @unsent

        @held = @unsent
        @unsent = nil
        @exchange.hold_head(@held)
      rescue InvalidResponseError
        keep_unsent
        raise
      end

      # Discards an unsent head, so that another response can be sent. Idempotent.
      # @return [Boolean] false: there is no head, the head was already sent, or content was written
      def withdraw
        return true if @unsent
        return false unless @held && sent == 0 && !@finished && @exchange.withdraw_head(@held)

        @unsent = @held
        @held = nil
        true
      end

      # Sends the head with the whole content, if possible in one write.
      # @param chunks [Array<String>]
      # @param size [Integer] bytes
      def write_all(chunks, size)
        return each_chunk(chunks) if @framing != :length || @precoded

        @unsent = nil
        @exchange.send_whole(@head, chunks)
        @sent += size
      end

      # Sends a piece of the content.
      # @param data [String]
      # @raise [ClientGoneError]
      def write(data)
        return if @exchange.chunk(data)
        raise IOError, "the response is finished" if @finished

        data = decode(data) if @precoded
        data = cut(data) if @promised
        size = data.bytesize
        return if size == 0 || @framing == :none

        @sent += size
        flush
        @exchange.send_content(data)
      end

      # Sends a file as the content, after {#start} was called with the file's length.
      # @param file [File]
      # @param length [Integer] bytes
      def write_file(file, length)
        flush
        offset = 0
        while offset < length
          step = length - offset
          step = FILE_STEP if step > FILE_STEP
          @exchange.send_file(file, offset, step)
          offset += step
          @sent += step
        end
      end

      # Ends the content and the exchange. The loop sends output that is still queued. Then the connection may serve
      # another request.
      # @return [void]
      def finish
        return if @finished

        @finished = true
        @exchange.chunking = false
        return fall_short if (@promised && @sent < @promised) || (@precoded && !@precoded.done?)

        flush
        @exchange.send_end(@head)
      end

      # Turns the connection (with HTTP/2, the request's stream) into an event stream, which needs no fiber and lasts
      # until the client leaves. The head was already sent.
      # @param settings [Array] see {EventStream#connection_settings}
      # @return [Boolean] false: not possible now, so nothing has changed
      def stream_events(settings) = @finished = @exchange.stream_events(@status, *settings)

      # Turns the connection (with HTTP/2, the request's stream) into a WebSocket or an event stream with callbacks. The
      # head was already sent.
      # @param handler [Object]
      # @param callbacks [Rack::SocketCallbacks]
      # @param kind [Symbol] :plain, :deflated (permessage-deflate was negotiated), or :events for an event stream
      # @return [void]
      def upgrade(handler, callbacks, kind)
        @exchange.open_websocket(handler, callbacks, callbacks.logged?, @exchange.body&.unread, kind)
        @finished = true
      end

      # Aborts the response and closes the connection or stream, so that the client notices that the content is
      # incomplete.
      # @return [void]
      def abort
        @finished = @broken_off = true
        @exchange.chunking = false
        @exchange.close
      end

      private

      # Called when the protocol has rejected the head and sent nothing of it. Another response can still be sent.
      def keep_unsent
        @held = nil
        @unsent = @head
      end

      def each_chunk(chunks) = chunks.each { |chunk| write(chunk) }

      # Removes the application's own chunking, so that mistakes in it can't break the server's framing.
      def decode(data)
        output = String.new(encoding: Encoding::BINARY)
        buffer = @rest ? @rest << data.b : data.b
        position = @precoded.decode(buffer, 0, output)
        if @precoded.rejection
          raise InvalidResponseError, "the response has transfer-encoding: chunked, but its body is not in valid " \
                                      "chunks: #{@precoded.rejection.reason}"
        end

        @rest = buffer.byteslice(position, buffer.bytesize)
        output
      end

      def cut(data)
        room = @promised - @sent
        return data if data.bytesize <= room

        @violation ||= "the content is longer than its content-length of #{@promised} bytes: the rest is not sent"
        data.byteslice(0, room)
      end

      def fall_short
        @broken_off = true
        @violation = if @precoded
                       "transfer-encoding is chunked, but the content has no last chunk"
                     else
                       "the content is #{@sent} bytes long, but its content-length is #{@promised}"
                     end
        @exchange.close
      end
    end
  end
end
