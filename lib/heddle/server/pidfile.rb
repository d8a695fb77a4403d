# frozen_string_literal: true

require "fileutils"

module Heddle
  class Server
    # The file that tells others the server's process, as long as it runs.
    class Pidfile
      # @return [String]
      attr_reader :path

      # @param path [String]
      def initialize(path)
        @path = path
      end

      # Bytes that are read of a file, more than any number has.
      SIZE = 32
      private_constant :SIZE

      # The file of a killed server is overwritten: the sockets show whether another one runs.
      # @return [void]
      # @raise [BootError]
      def write
        # To open a pipe for writing waits for a reader.
        raise BootError, "the pidfile #{path} is a named pipe. Name another one with --pidfile." if File.pipe?(path)

        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, "#{Process.pid}\n")
      rescue SystemCallError => e
        raise BootError, "can't write the pidfile #{path}: #{e.message.sub(/ @ .*/, "")}. Name another one with " \
                         "--pidfile."
      end

      # Removes the file, unless it is another process's by now.
      # @return [void]
      def remove
        # Devices may be read without an end, and pipes wait.
        File.unlink(path) if File.file?(path) && File.read(path, SIZE).to_i == Process.pid
      rescue SystemCallError
        # It is gone, or was never there.
      end
    end
  end
end
