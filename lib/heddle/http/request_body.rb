# frozen_string_literal: true

module Heddle
  module HTTP
    # Reads a request's body piece by piece. Usually the body is complete before the application is called. If the
    # {Engine} streams it, bytes are received and decoded when the application reads, so that a client can't send faster
    # than the application reads.
    class RequestBody
      include MonotonicClock

      # Bytes to read at once from a body that is in a file.
      PIECE = 65_536
      private_constant :PIECE

      # @param exchange [Exchange] whose request has a body
      # @param raw [Boolean] whether to read what the client sends after an upgrade: bytes without framing and without
      #   a time limit, until the client closes its side
      def initialize(exchange, raw: false)
        @exchange = exchange
        @limits = exchange.engine.configuration
        @raw = raw
        @ahead = raw ? nil : exchange.take_body
        @position = 0
        @answered = false
        # The number of seconds for which the server may still wait for data from the client. heddle_body_next_deadline
        # (ext/heddle/http/body_deadline.c) calculates it in the same way for bodies that are not streamed.
        @allowance = @limits.body_grace
      end

      # @return [String, nil] the next bytes of the body, never empty; nil at its end
      # @raise [BadRequestError] if the body is malformed, too large or too slow
      # @raise [ClientGoneError] if the body ended too early, or if the client has paused for `idle_timeout` after the
      #   response has begun
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

      # Called when the response begins. From then on, `100 Continue` is not sent, because it would become a part of the
      # response. Only `idle_timeout` limits the client's pauses, because the client may have to read a part of the
      # response before it can send more.
      # @return [void]
      def answered
        @answered = true
        @exchange.end_expectation
      end

      # @return [String, nil] bytes that were received but not read
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
        raise ClientGoneError, "the connection failed (#{e.class})"
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

      # Seconds within which the next bytes must arrive.
      def time_left
        return @limits.idle_timeout if @answered
        return @limits.body_timeout if @limits.body_rate == 0

        @allowance > 0 ? @allowance : too_slow
      end

      def too_slow
        raise ClientGoneError, "the client sent nothing more of its body for #{@limits.idle_timeout} s" if @answered

        rate = "came slower than #{@limits.body_rate} bytes a second, or " if @limits.body_rate > 0
        raise BadRequestError, Rejection.new(408, "the body #{rate}paused for #{@limits.body_timeout} s")
      end

      # Sends 100 Continue, unless the client has already begun to send the body (RFC 9110, 10.1.1).
      def send_continue
        @exchange.end_expectation
        @exchange.send_continue unless @exchange.buffered?
      end
    end
  end
end
