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

      # The file of a killed server is overwritten: the sockets show whether another one runs.
      # @return [void]
      # @raise [BootError]
      def write
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, "#{Process.pid}\n")
      rescue SystemCallError => e
        raise BootError, "can't write the pidfile #{path}: #{e.message.sub(/ @ .*/, "")}. Name another one with " \
                         "--pidfile."
      end

      # Removes the file, unless it is another process's by now.
      # @return [void]
      def remove
        File.unlink(path) if File.read(path).to_i == Process.pid
      rescue SystemCallError
        # It is gone, or was never there.
      end
    end
  end
end
