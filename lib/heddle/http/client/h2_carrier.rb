# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Sends a request as a stream of an HTTP/2 connection (RFC 9113, 8).
      #
      # @api private
      class H2Carrier < Carrier
        # Number of bytes of a body to read at once.
        PIECE = 65_536
        # Error codes (RFC 9113, 7).
        CODES = %w[NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED
                   FRAME_SIZE_ERROR REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM
                   INADEQUATE_SECURITY HTTP_1_1_REQUIRED].freeze
        HTTP_1_1_REQUIRED = CODES.index("HTTP_1_1_REQUIRED")
        private_constant :PIECE, :CODES, :HTTP_1_1_REQUIRED

        # Sends the request.
        # @param may_retry [Boolean] whether {RepeatError} may be raised
        # @return [H2::ReceivedResponse]
        # @raise [Error]
        def head(may_retry)
          @may_retry = may_retry
          @first = @connection.uses.zero?
          @stream = open_stream
          write_body
          await(FirstByteTimeoutError, @limits.first_byte, "sent no response") { @stream.status || @stream.failed? }
          raise failure unless @stream.status

          H2::ReceivedResponse.new(@stream.status, @stream.take_head, @stream.head_only?)
        end

        # @return [String] the whole body
        def read_all(limit)
          whole = String.new
          while (piece = read_piece)
            whole.empty? ? whole = piece : whole << piece
            raise too_large(limit) if whole.bytesize > limit
          end
          whole
        end

        # @return [String, nil] the next piece of the body; nil: it is complete
        def read_piece
          unless (piece = @stream.read(PIECE))
            return if @stream.ended?

            await(ReadTimeoutError, @limits.read, "sent no more of its response") do
              @stream.buffered.positive? || @stream.ended? || @stream.failed?
            end
            piece = @stream.read(PIECE) or return @stream.ended? ? nil : raise(failure)
          end
          flush # sends WINDOW_UPDATE, so that the server may send as many bytes again
          piece
        end

        # @return [Array<String>, nil] names in lower case and values, alternating
        def trailers = @stream.trailers

        # Resets the stream if it has not ended (RFC 9113, 5.4.2), and releases the connection, which stays open.
        # @return [void]
        def finish
          @stream&.close
          flush(0)
        ensure
          @origin.release_stream(@connection)
        end

        private

        def open_stream
          bodiless = @request.body.nil? || (@request.body.is_a?(String) && @request.body.empty?)
          stream = @connection.open(@request.method, @origin.scheme, @origin.authority, @request.target,
                                    @request.fields.to_a, bodiless)
          return stream if stream

          raise @may_retry ? RepeatError : ConnectionLostError, "#{@origin}: the server accepted no further request"
        end

        # An exception of the body object's own methods passes through to the caller.
        def write_body
          if @request.streams_body?
            @stream.finish if @request.each_data { |piece| write_piece(piece) || break }
          elsif @request.body && !@request.body.empty?
            @stream.finish if write_piece(@request.body)
          end
          flush
        end

        # @return [Boolean] whether the whole piece was written; false: the server has responded before it received the
        #   whole body, or the stream has failed
        def write_piece(piece)
          offset = 0
          while offset < piece.bytesize
            taken = @stream.write(piece, offset)
            offset += taken
            flush
            next unless taken.zero?

            await(WriteTimeoutError, @limits.write, "read no more of the request") do
              @stream.room? || @stream.status || @stream.failed?
            end
            return false unless @stream.room?
          end
          true
        end

        # @param deadline [Float, nil] 0: sends what is pending, such as RST_STREAM, without waiting
        def flush(deadline = deadline_after(@limits.write))
          @connection.flush(deadline)
        rescue IO::TimeoutError
          raise timed_out(WriteTimeoutError, "read no more of the request") unless deadline&.zero?
        rescue SystemCallError, IOError
          nil # the caller checks the stream's state
        end

        def await(phase, seconds, what, &)
          @connection.await(@stream, deadline_after(seconds), &)
        rescue IO::TimeoutError
          raise timed_out(phase, what)
        rescue SystemCallError, IOError => e
          raise repeat_or_fail(false, e.message, false) unless @stream.status

          raise IncompleteBodyError, "#{place}: the connection was lost before the end of the body (#{e.message})"
        end

        def deadline_after(seconds)
          return @deadline unless seconds

          own = MonotonicClock.now + seconds
          @deadline ? [own, @deadline].min : own
        end

        # The error for a missing or incomplete response.
        # @return [Exception]
        def failure
          kind, code, reason = @stream.failure
          why = describe(kind, code, reason)
          if %i[rejected failed].include?(kind) && code.nonzero?
            ProtocolError.new("#{place}: #{why}")
          elsif @stream.status
            IncompleteBodyError.new("#{place}: #{why} before the end of the body")
          else
            lost_before_answer(kind, code, why)
          end
        end

        def lost_before_answer(kind, code, why)
          required = kind == :reset && code == HTTP_1_1_REQUIRED
          @origin.require_http1 if required
          unprocessed = required || kind == :refused
          repeat_or_fail(unprocessed, why, unprocessed || (kind == :lost && !@first))
        end

        def describe(kind, code, reason)
          case kind
          when :refused then "the server has refused the request"
          when :reset then "the server has reset the stream (#{CODES.fetch(code, code)})"
          when :lost then "the server closed the connection"
          else code.zero? ? "the client closed the connection" : "the response violates HTTP/2: #{reason}"
          end
        end
      end
    end
  end
end
