# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Sends a request over an HTTP/1.1 connection, which no other request uses meanwhile.
      #
      # @api private
      class H1Carrier < Carrier
        # Sends the request, and reads the head of the final response.
        # @param may_retry [Boolean] whether {RepeatError} may be raised
        # @return [H1::ReceivedResponse]
        # @raise [Error]
        def head(may_retry)
          @may_retry = may_retry
          @socket = @connection.socket
          @sent_before = @socket.bytes_sent
          @unwritten = true
          @interims = 0
          write
          @answer ||= read_head
        end

        # @return [String] the whole body
        def read_all(limit)
          body = reading_body { @connection.reader.read_all(limit, @limits.read) }
          return body if body.is_a?(String)
          raise too_large(limit) if body.nil?

          raise ProtocolError, body.reason
        end

        # @return [String, nil] the next piece of the body; nil: it is complete
        def read_piece
          piece = reading_body { @connection.reader.read_body(65_536, @limits.read) }
          return piece unless piece.is_a?(Rejection)

          raise ProtocolError, piece.reason
        end

        # @return [nil] trailers of chunked bodies are not kept
        def trailers = nil

        # Releases the connection for another request. If the request was not written completely or the head of its
        # response was not read, closes the connection first, because the remaining bytes would mix with the next
        # request or response.
        # @return [void]
        def finish
          @connection.close if @unwritten || !@answer
          @origin.release(@connection)
          @connection = nil
        end

        private

        # An exception of the body object's own methods passes through to the caller.
        def write
          complete = send_piece(@request.opening)
          @request.each_piece { |piece| (complete = send_piece(piece)) || break } if complete && @request.streams_body?
          @unwritten = !complete
        end

        # @return [Boolean] false: the server has responded before it received the whole body, or has closed the
        #   connection
        def send_piece(piece)
          loop do
            size = piece.is_a?(String) ? piece.bytesize : piece.sum(&:bytesize)
            written = @socket.write_unless_answered(piece, timeout: @limits.write)
            return true if written == size
            return false if answered?

            piece = rest_of(piece, written)
          end
        rescue IO::TimeoutError
          raise timed_out(WriteTimeoutError, "read no more of the request")
        rescue SystemCallError, IOError => e
          raise lost(e) if nothing_taken? || e.instance_of?(IOError)

          @broken = e # the server may have responded before it closed the connection
          false
        end

        # Reads what the server has sent before the request was written completely.
        # @return [Boolean] true: the final response has come; false: only interim responses have come, so writing
        #   continues
        def answered?
          loop do
            head = next_head
            return @answer = head unless head.interim?
            return false unless @socket.stale?
          end
        end

        def rest_of(piece, written)
          whole = piece.is_a?(String) ? piece : piece.join
          whole.byteslice(written, whole.bytesize - written)
        end

        def read_head
          nil while (head = next_head).interim?
          head
        end

        def next_head
          reader = @connection.reader
          head = reader.read_head(@request.method, @limits.first_byte, @limits.read)
          raise lost(@broken) unless head
          raise ProtocolError, "#{@origin}: #{head.reason}" if head.is_a?(Rejection)
          raise ProtocolError, "#{@origin} switched protocols without being asked to" if head.status == 101
          return head unless head.interim? && (@interims += 1) >= Defaults::INTERIM_LIMIT

          raise ProtocolError, "#{@origin} sent #{Defaults::INTERIM_LIMIT} interim responses and no final response"
        rescue IO::TimeoutError
          raise timed_out(reader.begun? ? ReadTimeoutError : FirstByteTimeoutError, "sent no response")
        rescue SystemCallError, IOError => e
          raise lost(e)
        end

        def reading_body
          yield
        rescue IO::TimeoutError
          raise timed_out(ReadTimeoutError, "sent no more of its response")
        rescue EOFError => e
          raise IncompleteBodyError, "#{place}: #{e.message}"
        rescue SystemCallError, IOError => e
          raise IncompleteBodyError, "#{place}: the connection was lost before the end of the body (#{e.message})"
        end

        def nothing_taken? = @socket.bytes_sent == @sent_before

        # @param cause [Exception, nil]
        def lost(cause)
          why = cause.is_a?(Exception) ? cause.message : "the connection was closed without a response"
          repeat_or_fail(nothing_taken?, why, @connection.reused? && !@connection.reader.begun?)
        end
      end
    end
  end
end
