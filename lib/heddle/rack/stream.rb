# frozen_string_literal: true

module Heddle
  module Rack
    # The argument of a streaming body: reads the request's body and writes the response's, both as an IO would, at the
    # same time if need be. After an upgrade it is the bare connection.
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
        @exchange = exchange # the last variable: C finds it fastest
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
      #   Sends at once. Waits while the client is slower than the application. Tasks may write to one stream at the
      #   same time: each call's strings stay together. (In C, where the common case is one step.)
      #   @param strings [Array<#to_s>]
      #   @return [Integer] bytes
      #   @raise [ClientGoneError]
      #   @raise [IOError] when closed for writing
      #   @raise [ThreadError] from another thread than the request's

      # @return [self]
      def <<(string)
        write(string)
        self
      end

      # Sends the head, which otherwise waits for the first write. Nothing else is buffered.
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

        raise ThreadError, "only the thread that serves the request may write to its stream: let other threads pass " \
                           "their data to it by a Thread::Queue, or take the connection over with rack.hijack"
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
