# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # A request's body as it comes over a connection: bytes are decoded when somebody asks for them, so a client
      # can send no faster than the application reads.
      class RequestBody
        # @param connection [ServerConnection]
        # @param head [RequestHead] of a request that has a body
        # @return [RequestBody]
        def self.for(connection, head)
          limits = connection.engine.configuration
          decoder = if head.chunked?
                      ChunkedDecoder.new(limits, header_bytes: head.field_bytes, header_count: head.line_count)
                    else
                      LengthDecoder.new(head.content_length)
                    end
          new(connection, decoder, continue: head.expects_continue?)
        end

        # @param connection [ServerConnection]
        # @return [RequestBody] what the client sends after an upgrade: it may take any time, and the end of input is
        #   its end
        def self.raw(connection) = new(connection, RawDecoder.new, pace: :none)

        # @param connection [ServerConnection]
        # @param decoder [#decode, #done?, #refusal, #remaining]
        # @param continue [Boolean] whether the client waits for `100 Continue`
        # @param pace [Symbol] :rate when the least rate of bodies holds, :idle when any byte will do, or :none
        def initialize(connection, decoder, continue: false, pace: :rate)
          @connection = connection
          @limits = connection.engine.configuration
          @decoder = decoder
          @continue = continue
          @pace = pace
          @ahead = nil
          @received = 0
          @waited = 0.0
        end

        # @return [Boolean] whether everything has been received, if not read
        def received? = @decoder.done?

        # @return [Boolean] whether the rest, if the application leaves it, is likely worth reading for the sake of
        #   the connection
        def discardable? = !@continue && (@decoder.remaining || 0) <= @limits.body_buffer

        # Reads a body ahead that is small enough to be complete before the application is called. A client that
        # waits for `100 Continue` gets it when the application reads.
        # @return [void]
        # @raise [BadRequest] for a malformed, too large or too slow body
        # @raise [ClientGone] for one that ended too early
        def prefetch
          return if @continue || @limits.body_buffer == 0

          length = @decoder.remaining
          return if length && length > @limits.body_buffer

          length ? prefetch_whole : prefetch_chunked
        end

        # @return [String, nil] the next bytes of the body, never empty; nil at its end
        # @raise [BadRequest] for a malformed, too large or too slow body
        # @raise [ClientGone] for one that ended too early
        def read
          if @ahead
            ahead = @ahead
            @ahead = nil
            return ahead
          end
          loop do
            bytes = decode
            return bytes unless bytes.empty?
            return if @decoder.done?

            return unless receive
          end
        end

        # The answer has begun: `100 Continue` would be part of it, and from here the client may take its time, as
        # both sides may be talking.
        # @return [void]
        def answered
          @continue = false
          @pace = :idle if @pace == :rate
        end

        # Throws away what the application left, so that the connection can serve the next request.
        # @return [Boolean] whether the rest was small enough to do so
        def discard
          @ahead = nil
          return false unless discardable?

          left = @limits.body_buffer
          until @decoder.done?
            return false if left <= 0

            bytes = read or break
            left -= bytes.bytesize
          end
          true
        rescue BadRequest, ClientGone
          false
        end

        private

        def prefetch_whole
          whole = nil
          until @decoder.done?
            bytes = decode
            whole = whole ? whole << bytes : bytes
            receive unless @decoder.done?
          end
          @ahead = whole
        end

        # Its length is not known and it may never end: a client that pauses may be waiting for the answer.
        def prefetch_chunked
          whole = decode
          until @decoder.done? || whole.bytesize > @limits.body_buffer
            break unless receive(pause: @limits.body_pause)

            whole << decode
          end
          @ahead = whole unless whole.empty?
        end

        def decode
          output = String.new(encoding: Encoding::BINARY)
          @connection.position = @decoder.decode(@connection.buffer, @connection.position, output)
          raise BadRequest, @decoder.refusal if @decoder.refusal

          output
        end

        # @return [Boolean] false at an end of input that is the body's end too, or after a pause
        def receive(pause: nil)
          send_continue if @continue
          allowed = time_left
          timeout = pause && pause < allowed ? pause : allowed
          started = now
          before = @connection.buffer.bytesize - @connection.position
          return end_of_input unless @connection.fill(timeout)

          @waited += now - started
          @received += @connection.buffer.bytesize - @connection.position - before
          true
        rescue IO::TimeoutError
          @waited += now - started
          return false if pause && pause < allowed

          too_slow
        end

        # Seconds that the next bytes may take.
        def time_left
          return if @pace == :none
          return @limits.idle_timeout if @pace == :idle || @limits.body_rate == 0

          left = @limits.body_grace + (@received / @limits.body_rate.to_f) - @waited
          left > 0 ? left : too_slow
        end

        def too_slow
          raise ClientGone, "the client sent nothing of its body for #{@limits.idle_timeout} s" if @pace == :idle

          raise BadRequest, Refusal.new(408, "the body came slower than #{@limits.body_rate} bytes a second")
        end

        def end_of_input
          return false if @decoder.is_a?(RawDecoder)

          raise ClientGone, "the request's body ended before it was complete"
        end

        # Not needed when the client has begun to send (RFC 9110, 10.1.1).
        def send_continue
          @continue = false
          @connection.write(ResponseWriter::CONTINUE) unless @connection.buffered?
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
