# frozen_string_literal: true

module Heddle
  module HTTP
    class Client
      # Sends a request over a connection of its origin, and reads the answer. Decides what may be sent again.
      class Exchange
        # Interim answers (1xx) before the final one; a server that sends more is refused.
        INTERIM_LIMIT = 32
        # Connections that may turn out to be closed one after the other; the next one has carried no request.
        RETRIES = 3
        private_constant :INTERIM_LIMIT, :RETRIES

        # The connection was lost where the request may be sent again.
        class Again < StandardError; end
        private_constant :Again

        # @param request [Request]
        # @param limits [TimeLimits]
        # @param deadline [Integer, nil] of everything together, by CLOCK_MONOTONIC in nanoseconds
        def initialize(request, limits, deadline)
          @request = request
          @origin = request.origin
          @limits = limits
          @deadline = deadline
          @retries = 0
        end

        # Sends the request. Afterwards the connection is this exchange's until {#finish}.
        # @return [H1::ReceivedResponse]
        # @raise [Error]
        def head
          @connection = @origin.acquire(@limits, @deadline, fresh: @retries.positive?)
          @socket = @connection.socket
          @sent_before = @socket.bytes_sent
          @unwritten = nil
          write
          read_head
        rescue Again
          finish
          retry
        end

        # @return [String] the whole body
        def read_all(limit)
          body = reading_body { @connection.reader.read_all(limit, @limits.read) }
          return body if body.is_a?(String)
          raise BodyTooLarge, "the body of #{@origin}#{@request.target} is larger than #{limit} bytes" if body.nil?

          raise ProtocolError, body.reason
        end

        # @return [String, nil] the next piece of the body; nil: it is complete
        def read_piece
          piece = reading_body { @connection.reader.read_body(65_536, @limits.read) }
          return piece unless piece.is_a?(Refusal)

          raise ProtocolError, piece.reason
        end

        # The connection may carry another request, or is closed where it may not. Idempotent.
        # @return [void]
        def finish
          return unless (connection = @connection)

          @connection = nil
          connection.close if @unwritten
          @origin.release(connection)
        end

        private

        def write
          opening = @request.opening
          send_piece(opening)
          @request.each_piece { |piece| @unwritten ? break : send_piece(piece) } if @request.streams_body?
        rescue IO::TimeoutError
          raise timed_out(WriteTimeout, "took nothing of the request")
        rescue SystemCallError, IOError => e
          raise lost(e) if nothing_taken? || e.instance_of?(IOError)

          @unwritten = e # the server may have answered before it closed
        end

        # Sets @unwritten where the server answers before it has the whole.
        def send_piece(piece)
          written = @socket.write_unless_answered(piece, @limits.write)
          size = piece.is_a?(String) ? piece.bytesize : piece.sum(&:bytesize)
          @unwritten = true if written < size
        end

        def read_head
          reader = @connection.reader
          INTERIM_LIMIT.times do
            head = reader.read_head(@request.method, @limits.first_byte, @limits.read)
            return head if head.is_a?(H1::ReceivedResponse) && !head.interim?
            raise lost(@unwritten) unless head
            raise ProtocolError, "#{@origin}: #{head.reason}" if head.is_a?(Refusal)
          end
          raise ProtocolError, "#{@origin} sent #{INTERIM_LIMIT} interim answers and no final one"
        rescue IO::TimeoutError
          raise timed_out(reader.begun? ? ReadTimeout : FirstByteTimeout, "sent no answer")
        rescue SystemCallError, IOError => e
          raise lost(e)
        end

        def reading_body
          yield
        rescue IO::TimeoutError
          raise timed_out(ReadTimeout, "did not go on with its answer")
        rescue EOFError => e
          raise IncompleteBody, "#{@origin}#{@request.target}: #{e.message}"
        rescue SystemCallError, IOError => e
          raise IncompleteBody,
                "#{@origin}#{@request.target}: the connection was lost before the end of the body (#{e.message})"
        end

        def nothing_taken? = @socket.bytes_sent == @sent_before

        # @param cause [Exception, nil]
        def lost(cause)
          if @connection.reused? && !@connection.reader.begun? && may_repeat? && @retries < RETRIES
            @retries += 1
            return Again.new
          end
          why = cause.is_a?(Exception) ? cause.message : "the server closed it without an answer"
          subject = "#{@request.method} #{@origin}#{@request.target}"
          if nothing_taken? || @request.idempotent?
            ConnectionLost.new("#{subject}: the connection was lost: #{why}")
          else
            OutcomeUnknown.new("#{subject}: the connection was lost; the server may have carried it out or not: #{why}")
          end
        end

        # A server that closes an idle connection takes nothing of what comes at the same time (RFC 9112, 9.3.1), but
        # only where nothing was sent is that certain.
        def may_repeat? = @request.replayable? && (nothing_taken? || @request.idempotent?)

        def timed_out(phase, what)
          phase = TotalTimeout if @deadline && Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) >= @deadline
          phase.new("#{@origin} #{what} in time")
        end
      end
    end
  end
end
