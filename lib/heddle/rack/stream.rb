# frozen_string_literal: true

module Heddle
  module Rack
    # The argument of a streaming body (a body with `call`). Like an IO, it reads the request's body and writes the
    # response's. Both are possible at the same time. After an upgrade it reads and writes the bytes of the connection.
    # Any thread may write to it, also after the body's `call` has returned.
    class Stream
      # @param input [Input, NoInput]
      # @param exchange [HTTP::Exchange]
      # @param ended [Thread::Queue, nil] a queue to close when the response has ended; nil: no fiber waits for the end
      def initialize(input, exchange, ended = nil)
        @input = input
        @response = exchange.response
        @calls = thread_calls
        @ended = ended
        @lock = exchange.make_lock
        @read_closed = false
        @exchange = exchange # set last, because C finds the last variable fastest
      end

      # @see Input#read
      def read(length = nil, buffer = nil)
        check_readable
        @input.read(length, buffer)
      end

      # @see Input#readpartial
      def readpartial(length, buffer = nil)
        check_readable
        @input.readpartial(length, buffer)
      end

      # @see Input#gets
      def gets
        check_readable
        @input.gets
      end

      # @!method write(*strings)
      #   Sends the strings at once, without a buffer. Waits while the client is slower than the application. Several
      #   tasks may write at the same time; the strings of one call are sent together. (ext/heddle/rack/exchange.c)
      #   @param strings [Array<#to_s>]
      #   @return [Integer] the number of bytes
      #   @raise [ClientGoneError]
      #   @raise [IOError] when closed for writing

      # @return [self]
      def <<(string)
        write(string)
        self
      end

      # Sends the head now, not only with the first write. Content needs no flush, because it is not buffered.
      # @return [self]
      def flush
        in_turn { @response.flush unless @response.finished? }
        self
      end

      # @return [nil]
      def close_read
        @read_closed = true
        nil
      end

      # Ends the response.
      # @return [nil]
      def close_write
        in_turn { @response.finish } unless @response.finished?
        nil
      ensure
        @ended&.close
      end

      # @return [nil]
      def close
        close_read
        close_write
      end

      # @return [Boolean]
      def closed? = @read_closed && @response.finished?

      private

      def write_all(*strings)
        in_turn do
          raise IOError, "the stream is closed for writing" if @response.finished?

          strings.sum do |string|
            string = string.to_s
            @response.write(string)
            string.bytesize
          end
        end
      end

      def thread_calls = Concurrency::Context.of(Fiber.current_scheduler).thread_calls

      # Runs the block in the loop, one block at a time.
      def in_turn(&)
        return @calls.ask { @lock.synchronize(&) } if @calls&.needed?

        @lock.synchronize(&)
      end

      def check_readable
        raise IOError, "the stream is closed for reading" if @read_closed
      end
    end
  end
end
