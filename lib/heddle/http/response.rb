# frozen_string_literal: true

module Heddle
  module HTTP
    # Sends one response, and no more content than its head announces. The {Exchange} frames it.
    class Response
      # Bytes of a file that are sent in one step, which has a time limit of its own.
      FILE_STEP = 1_048_576
      # The limits for decoding content that the application has chunked itself.
      UNLIMITED = Limits.new(body_limit: 1 << 50, chunk_overhead_limit: 1 << 50)
      private_constant :FILE_STEP, :UNLIMITED

      # @return [Integer, nil] the status, once the head is made
      attr_reader :status
      # @return [Float, nil] the age of the exchange when the head was made, in seconds
      attr_reader :begun_after
      # @return [String, nil] what the application did wrong about the content's length
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

      # @return [Integer] bytes of content that were sent
      def sent = @sent + @exchange.content_sent

      # @return [Boolean] whether the head is made. Until it is sent, {#withdraw} takes it back
      def started? = !@status.nil?

      # @return [Boolean] whether this object sends nothing more
      def finished? = @finished

      # @return [Boolean] whether all content was sent that the head has announced
      def complete? = @finished && !@broken_off

      # @return [Boolean] whether there is no content to send, as for HEAD and 304
      def bodiless? = @framing == :none

      # @return [Boolean] whether the connection belongs to the application's stream from here on
      def raw? = @framing == :raw

      # Sends an interim response 103, unless the client does not understand interim responses or the response has
      # begun.
      # @param headers [Hash]
      # @raise [InvalidResponseError]
      # @raise [ClientGoneError]
      def early_hints(headers)
        @exchange.send_early_hints(headers) if @exchange.interim? && !started?
      end

      # Makes the head. It is sent with the first content, or by {#flush} or {#finish}.
      # @param status [Integer]
      # @param headers [Hash{String => String, Array<String>}]
      # @param length [Integer, nil] of the content, where it is known
      # @param protocol [String, nil] the protocol to upgrade to
      # @param until_close [Boolean] whether the content of unknown length ends with the connection, unframed
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

      # Sends the head now, though there is no content yet.
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

      # Sends the head in the loop's next tick: when this fiber waits, or has used up its slice. Until then it can be
      # withdrawn.
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

      # Takes a held head back, so that another response can be sent. Idempotent.
      # @return [Boolean] false: it was sent already, or content has been written
      def withdraw
        return true if @unsent
        return false unless @held && sent == 0 && !@finished && @exchange.withdraw_head(@held)

        @unsent = @held
        @held = nil
        true
      end

      # Sends the whole content with the head, in one write where the connection can.
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

      # Sends a file as the content. The response was started with its length.
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

      # Ends the content, and with it the exchange: the loop sends what is left of the response, and the connection may
      # serve another request.
      # @return [void]
      def finish
        return if @finished

        @finished = true
        @exchange.chunking = false
        return fall_short if (@promised && @sent < @promised) || (@precoded && !@precoded.done?)

        flush
        @exchange.send_end(@head)
      end

      # Leaves the rest to the connection, which sends events as long as its client is connected. The head was sent.
      # @param settings [Array] see {EventStream#connection_settings}
      # @return [Boolean] false: it can't, and nothing has changed
      def stream_events(settings) = @finished = @exchange.stream_events(@status, *settings)

      # The connection is a WebSocket from here on. The head was sent.
      # @param handler [Object]
      # @param callbacks [Rack::SocketCallbacks]
      # @param kind [Symbol] :plain, :deflated (permessage-deflate was negotiated), or :events for an event stream
      # @return [void]
      def upgrade(handler, callbacks, kind)
        @exchange.open_websocket(handler, callbacks, callbacks.logged?, @exchange.body&.unread, kind)
        @finished = true
      end

      # Aborts the response in a way that shows the client that the content is incomplete.
      # @return [void]
      def abort
        @finished = @broken_off = true
        @exchange.chunking = false
        @exchange.close
      end

      private

      # The protocol has found a fault in the head, and has sent nothing of it: another response can be sent.
      def keep_unsent
        @held = nil
        @unsent = @head
      end

      def each_chunk(chunks) = chunks.each { |chunk| write(chunk) }

      # Removes the application's own chunking, so that its mistakes don't break the server's framing.
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
