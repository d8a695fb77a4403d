# frozen_string_literal: true

require "stringio"

module Heddle
  class Server
    # The stream for errors, `rack.errors` of every request. Like the log, it drops lines rather than block.
    class ErrorStream < LineBuffer
      # @param texts [Array<#to_s>]
      # @return [Integer] bytes
      def write(*texts) = super(texts.join)

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

      # @return [true] each call writes its text
      def sync = true

      # Does nothing, because Rack forbids closing it. The method must exist: Logger, and so Sinatra, takes an object
      # without it for a file name.
      # @return [nil]
      def close = nil
    end
  end
end
