# frozen_string_literal: true

require "fileutils"

module Heddle
  class Server
    # The file with the server's process ID, while it runs.
    class Pidfile
      # @return [String]
      attr_reader :path

      # @param path [String]
      def initialize(path)
        @path = path
      end

      # Bytes that are read from the file: more than any process ID has.
      SIZE = 32
      private_constant :SIZE

      # Overwrites an existing file, which a killed server may have left. A server that still runs would have kept the
      # sockets, which were opened before.
      # @return [void]
      # @raise [BootError]
      def write
        # Opening a pipe for writing would wait for a reader.
        raise BootError, "the pidfile #{path} is a named pipe. Name a regular file with --pidfile." if File.pipe?(path)

        FileUtils.mkdir_p(File.dirname(path))
        @former = running
        replace_id(Process.pid)
      rescue SystemCallError => e
        raise BootError, "can't write the pidfile #{path}: #{e.message.sub(/ @ .*/, "")}. Name another file with " \
                         "--pidfile."
      end

      # Removes the file, unless it names another process by now. If the server whose ID this one has overwritten still
      # runs, restores its ID.
      # @return [void]
      def remove
        return unless named == Process.pid

        @former && running?(@former) ? replace_id(@former) : File.unlink(path)
      rescue SystemCallError
        # The file does not exist any more.
      end

      private

      # Overwrites the former ID before it truncates the file, because a monitor may read the file at any moment.
      def replace_id(pid)
        text = "#{pid}\n"
        File.open(path, File::RDWR | File::CREAT) do |file|
          former = file.size
          file.syswrite(text.ljust([former, SIZE].min, "\n"))
          file.truncate(text.size) if former > text.size
        end
      end

      # Reads only regular files: a device may be endless, and a pipe would wait.
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
