# frozen_string_literal: true

module Heddle
  module Net
    module DNS
      # One TCP connection: reads queries, and writes each response as soon as it is ready.
      class TCPSession
        include MonotonicClock

        # Maximum number of running queries on one connection. At the limit, reading stops until a query is done.
        MAX_QUERIES = 64
        # Bytes that are read at once; other fibers run before the next read. Small, because a client may send messages
        # of no bytes: 512 bytes contain up to 256 of these.
        READ_SIZE = 512

        # @return [String] 4 or 16 bytes
        attr_reader :address_bytes

        # @return [Float] CLOCK_MONOTONIC time at which the connection is closed if no query is running; each response
        #   extends it
        attr_reader :idle_until

        # @param socket [TCPSocket]
        # @param address [String] 4 or 16 bytes
        # @param server [Server]
        # @param port [TCPPort]
        # @param idle [Numeric] seconds
        def initialize(socket, address, server, port, idle)
          @socket = socket
          @socket.timeout = idle # limits each write that waits
          @address_bytes = address
          @server = server
          @port = port
          @idle = idle
          @buffer = "".b
          @running = Thread::SizedQueue.new(MAX_QUERIES) # one entry for each running query
          @writing = Thread::Mutex.new
          @done = Thread::ConditionVariable.new
          extend_idle_time
        end

        def transport = :tcp

        def address = @address ||= AddressText.from_bytes(@address_bytes)

        # @return [Boolean] whether the session runs, and has no running query
        def idle? = !@task.nil? && @running.empty?

        # Ends {#run} at its next wait. Makes room for another connection at once.
        def close
          @task&.cancel
          @task = nil
          @port.forget(self)
        end

        # Closes the socket.
        def release = @socket.close

        # Serves until the client closes its side or the idle time is over.
        def run
          @task = Task.current
          @port.note_change
          while (bytes = read)
            @buffer << bytes
            take_queries
            sleep(0)
          end
          await_responses
        rescue IOError, SystemCallError
          nil # the client has left or does not read, so the other responses are not needed
        end

        # @param response [Message]
        def respond(response) = transmit(response.encode)

        # Called when a query is done, with or without a response.
        def finish
          @running.pop(timeout: 0)
          return unless @running.empty?

          @writing.synchronize { @done.signal }
          @port.note_change
        end

        private

        def transmit(bytes)
          # Length and message in one write, because some clients read only once (RFC 7766, section 8).
          @writing.synchronize { @socket.write([bytes.bytesize].pack("n") << bytes) }
        rescue IOError, SystemCallError
          @server.count(:unsent)
          release # part of this response may have been sent, so no other may follow
        ensure
          extend_idle_time
          finish
        end

        # Only running queries and responses extend the idle time, so that sending a query byte by byte does not keep a
        # connection open.
        # @return [String, nil] nil: the client has closed its side, or the idle time is over
        def read
          loop do
            if @socket.wait_readable([@idle_until - now, 0].max)
              bytes = @socket.read_nonblock(READ_SIZE, exception: false)
              return bytes unless bytes == :wait_readable
            elsif @running.empty?
              return
            else
              extend_idle_time # a query is running, so the client waits for the server
            end
          end
        end

        def extend_idle_time
          @idle_until = now + @idle
        end

        def take_queries
          while @buffer.bytesize >= 2 && @buffer.bytesize >= 2 + (size = @buffer.unpack1("n"))
            message = @buffer.byteslice(2, size)
            @buffer = @buffer.byteslice((2 + size)..)
            @running.push(true)
            @server.receive(message, self) or finish
          end
        end

        def await_responses
          @writing.synchronize { @done.wait(@writing) until @running.empty? }
        end
      end
    end
  end
end
