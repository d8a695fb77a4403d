# frozen_string_literal: true

module Heddle
  module Rack
    # The argument of a streaming body (a body with `call`). Like an IO, it reads the request's body and writes the
    # response's. Both are possible at the same time. After an upgrade it reads and writes the bytes of the connection.
    class Stream
      # @param input [Input, NoInput]
      # @param exchange [HTTP::Exchange]
      # @param on_close [#call, nil] called once, when both directions are closed
      def initialize(input, exchange, on_close: nil)
        @input = input
        @response = exchange.response
        @on_close = on_close
        @thread = Thread.current
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
      #   @raise [ThreadError] on a thread other than the request's

      # @return [self]
      def <<(string)
        write(string)
        self
      end

      # Sends the head now, not only with the first write. Content needs no flush, because it is not buffered.
      # @return [self]
      def flush
        @response.flush unless @response.finished?
        self
      end

      # @return [nil]
      def close_read
        return if @read_closed

        @read_closed = true
        closed if @response.finished?
      end

      # Ends the response.
      # @return [nil]
      def close_write
        return if @response.finished?

        check_thread
        @lock.synchronize { @response.finish }
        closed if @read_closed
      end

      # @return [nil]
      def close
        @read_closed = true
        return closed if @response.finished?

        close_write
      end

      # @return [Boolean]
      def closed? = @read_closed && @response.finished?

      private

      def write_all(*strings)
        check_thread
        @lock.synchronize do
          raise IOError, "the stream is closed for writing" if @response.finished?

          strings.sum do |string|
            string = string.to_s
            @response.write(string)
            string.bytesize
          end
        end
      end

      def check_thread
        return if Thread.current.equal?(@thread)

        raise ThreadError, "only the thread that serves the request may write to its stream. Pass data from other " \
                           "threads to it in a Thread::Queue, or take the connection over with rack.hijack"
      end

      def check_readable
        raise IOError, "the stream is closed for reading" if @read_closed
      end

      def closed
        notice = @on_close
        @on_close = nil
        notice&.call
        nil
      end
    end
  end
end
