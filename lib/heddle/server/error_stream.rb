# frozen_string_literal: true

require "stringio"

module Heddle
  class Server
    # The stream that every request gets as `rack.errors`. Like the log, it drops lines when its output is slow, so that
    # a request never waits for it.
    class ErrorStream < LineBuffer
      # @param texts [Array<#to_s>]
      # @return [Integer] the number of bytes
      def write(*texts) = super(texts.map { |text| text.to_s.b }.join)

      # @param texts [Array<#to_s>]
      # @return [nil]
      def puts(*texts)
        formatted = StringIO.new
        formatted.puts(*texts)
        write(formatted.string)
        nil
      end

      # @param texts [Array<#to_s>]
      # @return [nil]
      def print(*texts)
        write(*texts)
        nil
      end

      # @param text [#to_s]
      # @return [self]
      def <<(text)
        write(text)
        self
      end

      # @return [Boolean]
      def tty? = @stream.respond_to?(:tty?) && @stream.tty?
      alias isatty tty?

      # @return [true] callers need not flush the stream
      def sync = true

      # Does nothing, because Rack forbids closing the stream. The method must exist: Logger, which Sinatra uses, treats
      # an object without it as a file name.
      # @return [nil]
      def close = nil
    end
  end
end
