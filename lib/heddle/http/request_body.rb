# frozen_string_literal: true

module Heddle
  module HTTP
    # A request's body, piece by piece. It is complete before the application is called, unless the {Engine}
    # streams it: then bytes are decoded when the application asks for them, so a client can send no faster than the
    # application reads.
    class RequestBody
      include MonotonicClock

      # Bytes of a piece that is read from a file.
      PIECE = 65_536
      private_constant :PIECE

      # @param exchange [Exchange] of a request that has a body
      # @param raw [Boolean] whether this is what the client sends after an upgrade: it may take any time, and the end
      #   of input is its end
      def initialize(exchange, raw: false)
        @exchange = exchange
        @limits = exchange.engine.configuration
        @raw = raw
        @ahead = raw ? nil : exchange.take_body
        @position = 0
        @answered = false
        # Seconds for which the server still waits for the client, as heddle_body_next_deadline
        # (ext/heddle/http/body_deadline.c) counts them.
        @allowance = @limits.body_grace
      end

      # @return [String, nil] the next bytes of the body, never empty; nil at its end
      # @raise [BadRequestError] for a malformed, too large or too slow body
      # @raise [ClientGoneError] for one that ended too early
      def read
        return take_ahead if @ahead
        return read_raw if @raw

        loop do
          bytes = @exchange.decode
          return bytes if bytes
          return if @exchange.received?

          receive
        end
      end

      # Called when the response has begun: `100 Continue` would become a part of it. From here on only `idle_timeout`
      # limits the client's pauses, because both sides may be sending.
      # @return [void]
      def answered
        @answered = true
        @exchange.end_expectation
      end

      # @return [String, nil] bytes that were received and not read
      def unread = (take_ahead if @ahead.is_a?(String))

      private

      def take_ahead
        ahead = @ahead
        if ahead.is_a?(SpooledBody)
          piece = ahead.byteslice(@position, PIECE)
          @position += piece.bytesize
          return piece unless piece.empty?
        end
        @ahead = nil
        ahead unless ahead.is_a?(SpooledBody)
      end

      def read_raw
        @exchange.readpartial(65_536)
      rescue SystemCallError => e
        raise ClientGoneError, "the connection broke (#{e.class})"
      end

      def receive
        send_continue if @exchange.expects?
        started = now
        bytes = @exchange.fill(time_left)
        raise ClientGoneError, "the request's body ended before it was complete" unless bytes

        return if @limits.body_rate == 0

        @allowance = [@allowance - (now - started) + (bytes / @limits.body_rate.to_f), @limits.body_timeout].min
      rescue IO::TimeoutError
        too_slow
      end

      # Seconds until the next bytes must come.
      def time_left
        return @limits.idle_timeout if @answered
        return @limits.body_timeout if @limits.body_rate == 0

        @allowance > 0 ? @allowance : too_slow
      end

      def too_slow
        raise ClientGoneError, "the client sent nothing of its body for #{@limits.idle_timeout} s" if @answered

        raise BadRequestError, Rejection.new(408, "the body came slower than #{@limits.body_rate} bytes a second, " \
                                                  "or paused for #{@limits.body_timeout} s")
      end

      # Not needed when the client has begun to send (RFC 9110, 10.1.1).
      def send_continue
        @exchange.end_expectation
        @exchange.send_continue unless @exchange.buffered?
      end
    end
  end
end
