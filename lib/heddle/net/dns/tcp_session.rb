# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # One TCP connection: reads queries, and writes each response as soon as it is ready.
      class TCPSession
        include MonotonicClock

        # Queries under way on one connection; then it is read no further until some are answered.
        MAX_QUERIES = 64
        READ = 16_384

        # @return [String] 4 or 16 bytes
        attr_reader :address_bytes

        # @return [Float] when the connection will be closed, unless a response is sent
        attr_reader :idle_until

        def initialize(connection, address, server, idle)
          @connection = connection
          @address_bytes = address
          @server = server
          @idle = idle
          @buffer = "".b
          @room = Thread::SizedQueue.new(MAX_QUERIES) # one entry a query under way
          @writing = Thread::Mutex.new
          @done = Thread::ConditionVariable.new
          extend_idle_time
        end

        def transport = :tcp

        def address = @address ||= AddressText.from_bytes(@address_bytes)

        # @return [Boolean] whether no query is under way
        def idle? = @room.empty?

        # @return [void]
        def close = @connection.close

        # Serves until the client has ended its side, or has sent nothing for the idle time.
        def run
          while (bytes = read)
            @buffer << bytes
            take_queries
          end
          await_responses
        rescue IOError, SystemCallError
          nil # the client has left or reads nothing, so the other responses are not needed
        end

        # @param response [Message]
        def respond(response) = transmit(response.encode)

        # Called when the query will get no response.
        def finish
          @room.pop(timeout: 0)
          @writing.synchronize { @done.signal } if @room.empty?
        end

        private

        def transmit(bytes)
          # Length and message in one write: some clients read only once (RFC 7766, section 8).
          @writing.synchronize { @connection.write([bytes.bytesize].pack("n") << bytes, timeout: @idle) }
        rescue IOError, SystemCallError
          @server.count(:unsent)
          @connection.close
        ensure
          extend_idle_time
          finish
        end

        # Only responses extend the idle time. A client that sends a query byte by byte is closed like a silent one.
        # @return [String, nil] nil at the end
        def read
          @connection.readpartial(READ, timeout: [@idle_until - now, 0].max)
        rescue IO::TimeoutError
          raise if @room.empty?

          extend_idle_time
          retry # a query is under way, so the client waits for the server
        end

        def extend_idle_time
          @idle_until = now + @idle
        end

        def take_queries
          while @buffer.bytesize >= 2 && @buffer.bytesize >= 2 + (size = @buffer.unpack1("n"))
            message = @buffer.byteslice(2, size)
            @buffer = @buffer.byteslice((2 + size)..)
            @room.push(true)
            @server.receive(message, self) or finish
          end
        end

        def await_responses
          @writing.synchronize { @done.wait(@writing) until @room.empty? }
        end
      end
    end
  end
end
