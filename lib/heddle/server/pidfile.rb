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
        @former = running
        File.write(path, "#{Process.pid}\n")
      rescue SystemCallError => e
        raise BootError, "can't write the pidfile #{path}: #{e.message.sub(/ @ .*/, "")}. Name another one with " \
                         "--pidfile."
      end

      # Removes the file, unless it is another process's by now. A server that had it before, and still runs, has it
      # again.
      # @return [void]
      def remove
        return unless named == Process.pid

        @former && running?(@former) ? File.write(path, "#{@former}\n") : File.unlink(path)
      rescue SystemCallError
        # It is gone, or was never there.
      end

      private

      # Devices may be read without an end, and pipes wait.
      def named = (File.read(path, SIZE).to_i if File.file?(path))

      def running
        pid = named.to_i
        pid if pid.positive? && pid != Process.pid && running?(pid)
      end

      def running?(pid)
        Process.kill(0, pid) == 1
      rescue Errno::EPERM
        true
      rescue SystemCallError, RangeError
        false
      end
    end
  end
end
