# frozen_string_literal: true

require "socket"

module Heddle
  class Server
    # A path to listen on.
    class UnixBind
      # @return [String]
      attr_reader :path

      # @param path [String]
      # @param mode [Integer, nil] the permissions of the socket's file
      def initialize(path, mode)
        @path = File.expand_path(path)
        @mode = mode
      end

      # @param backlog [Integer]
      # @return [Array<Listener>]
      # @raise [BootError]
      def open(backlog)
        remove_stale
        server = UNIXServer.new(path)
        File.chmod(@mode, path) if @mode
        server.listen(backlog)
        [Listener.new(server, "unix:#{path}", nil, path)]
      rescue ArgumentError
        raise BootError,
              "can't listen on unix:#{path}: a socket's path may have 107 bytes, this one has #{path.bytesize}"
      rescue SystemCallError => e
        raise BootError, reason(e)
      end

      private

      # A server that was killed leaves its file behind; nobody answers there.
      def remove_stale
        return unless File.socket?(path)

        UNIXSocket.new(path).close
        raise Errno::EADDRINUSE
      rescue Errno::ECONNREFUSED
        File.unlink(path)
      end

      def reason(error)
        case error
        when Errno::EADDRINUSE
          "can't listen on unix:#{path}: another program has that socket, or the path is a file. " \
          "Stop that program, or choose another path with -b."
        when Errno::ENOENT
          "can't listen on unix:#{path}: the folder #{File.dirname(path)} does not exist. Make it, " \
          "or choose another path."
        when Errno::EACCES
          "can't listen on unix:#{path}: this user may not write to #{File.dirname(path)}."
        else
          "can't listen on unix:#{path}: #{error.message}"
        end
      end
    end
  end
end
