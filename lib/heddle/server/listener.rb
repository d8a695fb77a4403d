# frozen_string_literal: true

module Heddle
  class Server
    # An open socket that accepts connections.
    class Listener
      # @return [TCPServer, UNIXServer]
      attr_reader :io
      # @return [String] where it is reached, for a person
      attr_reader :url
      # @return [Integer, nil] nil for a unix socket
      attr_reader :port

      # @param io [TCPServer, UNIXServer]
      # @param url [String]
      # @param port [Integer, nil]
      # @param path [String, nil] of a unix socket's file, which goes when the listener closes
      def initialize(io, url, port, path = nil)
        @io = io
        @url = url
        @port = port
        @path = path
        @inode = path && File.stat(path).ino
      end

      # @return [void]
      def close
        @io.close unless @io.closed?
        # Another server may have put its own there meanwhile.
        File.unlink(@path) if @path && File.exist?(@path) && File.stat(@path).ino == @inode
        @path = nil
      end
    end
  end
end
