# frozen_string_literal: true

module Heddle
  module HTTP
    module H1
      # The server's side of an HTTP/1 connection, from the moment it becomes readable until it waits again,
      # ends or is taken over. All reading, and every decision about the connection's life, is here.
      #
      # The connection underneath is whatever responds to the methods of Heddle::Net's connection:
      # `read_partial`, `unread`, `write`, `sendfile`, `idle!`, `shutdown_write`, `close`, `detach`.
      class ServerConnection
        READ_SIZE = 65_536
        # Requests that a client sent ahead are served in one go up to this number; then other connections
        # have their turn.
        PIPELINED = 8
        NOTHING = "".b.freeze
        private_constant :READ_SIZE, :PIPELINED, :NOTHING

        # @return [Engine]
        attr_reader :engine
        # @return [Object] the connection underneath
        attr_reader :connection
        # @return [String] bytes that were read; those before {#position} are used
        attr_reader :buffer
        # @return [Integer]
        attr_accessor :position

        # @param connection [Object]
        # @param engine [Engine]
        def initialize(connection, engine)
          @connection = connection
          @engine = engine
          @limits = engine.configuration
          @buffer = NOTHING
          @position = 0
          @over = false
          @end_of_input = false
        end

        # Serves the requests that are there.
        # @yieldparam head [RequestHead]
        # @yieldparam body [RequestBody, nil]
        # @yieldreturn [Boolean] whether the connection can serve another request
        # @return [void]
        def serve
          PIPELINED.times do
            head = read_head or return
            body = head.body? ? prepare_body(head) : nil
            return if @over
            return finish(body) unless yield(head, body)
            break if @position >= @buffer.bytesize
          end
          give_back
        ensure
          close
        end

        # Reads more of what the client sends.
        # @param timeout [Numeric, nil] seconds
        # @return [Boolean] false at the end of input
        # @raise [IO::TimeoutError]
        # @raise [ClientGone] when the connection broke
        def fill(timeout)
          return false if @end_of_input

          bytes = receive(timeout)
          if bytes.nil?
            @end_of_input = true
            return false
          end

          if @position >= @buffer.bytesize
            # A whole request in one read needs no copy.
            @buffer = bytes
            @position = 0
          else
            compact if @position > READ_SIZE
            @buffer << bytes
          end
          true
        end

        # @return [Boolean] whether there are bytes that nothing has used yet
        def buffered? = @position < @buffer.bytesize

        # Sends bytes, all of them.
        # @param bytes [String, Array<String>]
        # @raise [ClientGone]
        def write(bytes)
          @connection.write(bytes, @limits.write_timeout)
        rescue SystemCallError, IOError => e
          write_failed(e)
        end

        # Sends a part of a file.
        # @param file [File]
        # @param offset [Integer] bytes
        # @param length [Integer] bytes
        # @raise [ClientGone]
        # @raise [EOFError] when the file is shorter
        def sendfile(file, offset, length)
          @connection.sendfile(file, offset, length, @limits.write_timeout)
        rescue EOFError
          raise
        rescue SystemCallError, IOError => e
          write_failed(e)
        end

        # Hands the socket over: the server forgets the connection.
        # @return [Socket] with the bytes that were read ahead pushed back
        def detach
          unread
          @over = true
          @connection.detach
        end

        # Answers with a refusal, waits for the client to take it in, and closes.
        # @param refusal [Refusal]
        # @param content [Boolean] false for the answer to HEAD
        # @return [void]
        def refuse(refusal, content: true)
          return if @over

          answer = ErrorAnswer.bytes(refusal, @engine.date_line, content:)
          write(answer)
          linger
        rescue ClientGone
          # Then nobody is left to be told.
        ensure
          close
        end

        # Closes without further words; what was promised and not sent, the client must see as missing.
        # @return [void]
        def close
          return if @over

          @over = true
          @connection.close
        end

        # @return [Boolean] whether the connection is closed, given back or handed over
        def over? = @over

        private

        def receive(timeout)
          @connection.read_partial(READ_SIZE, timeout)
        rescue IO::TimeoutError
          raise
        rescue SystemCallError, IOError => e
          raise ClientGone, "the connection broke (#{e.class})"
        end

        # @return [RequestHead, nil] nil when there is none: then the connection is over
        def read_head
          deadline = now + @limits.head_timeout
          seen = @position
          loop do
            head = @engine.parser.parse(@buffer, @position, seen) if buffered?
            return begin_request(head) if head.is_a?(RequestHead)
            return reject(head) if head

            seen = @buffer.bytesize - @position
            timeout = deadline - now
            return late_head unless timeout > 0
            return cut_head unless fill(timeout)

            seen += @position
          end
        rescue IO::TimeoutError
          late_head
        rescue ClientGone
          nil
        end

        def begin_request(head)
          @position = head.ending
          head
        end

        # Refuses what never becomes a request of the application.
        def reject(refusal)
          @engine.refused(@connection, refusal)
          refuse(refusal)
          nil
        end

        def late_head
          return unless started?

          reject(Refusal.new(408, "the request head was not complete after #{@limits.head_timeout} s"))
        end

        def cut_head
          reject(Refusal.new(400, "the request ended in its head")) if started?
        end

        # Line ends between requests are nothing.
        def started? = @buffer.byteslice(@position, 3).to_s.delete("\r\n") != ""

        def prepare_body(head)
          body = RequestBody.for(self, head)
          body.prefetch
          body
        rescue BadRequest => e
          reject(e.refusal)
        rescue ClientGone => e
          reject(Refusal.new(400, e.message))
        end

        # The connection waits, as a bare record, for what comes next.
        def give_back
          return close if @end_of_input && !buffered?

          unread
          @over = true
          @connection.idle!
        end

        # The answer was the last one.
        def finish(body)
          linger if !@over && (buffered? || (body && !body.received?))
        end

        # A socket that is closed with unread input resets the connection, and the reset can overtake the answer
        # (RFC 9112, 9.6). So: say that no more comes, and read on for a while.
        def linger
          return if @limits.linger_timeout == 0 || @end_of_input

          @connection.shutdown_write
          deadline = now + @limits.linger_timeout
          drained = 0
          while drained < @limits.linger_limit && (timeout = deadline - now) > 0
            bytes = @connection.read_partial(READ_SIZE, timeout) or return
            drained += bytes.bytesize
          end
        rescue SystemCallError, IOError
          # The client closed, or took too long: either way it is over.
        end

        def unread
          @connection.unread(@buffer.byteslice(@position, @buffer.bytesize)) if buffered?
          @position = @buffer.bytesize
        end

        def compact
          @buffer = @buffer.byteslice(@position, @buffer.bytesize)
          @position = 0
        end

        def write_failed(error)
          case error
          when IO::TimeoutError
            message = "the client took nothing of the answer for #{@limits.write_timeout} s"
          when SystemCallError
            message = "the client left before it had the answer (#{error.class})"
          else
            # Two fibers at once, say: a mistake of the application, of which the connection knows nothing.
            raise error unless @connection.closed?

            message = "the connection was closed before the client had the answer"
          end
          close
          raise ClientGone, message
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
