# frozen_string_literal: true

require "fileutils"

module Heddle
  class Server
    # The file that contains the server's process ID while the server runs.
    class Pidfile
      # @return [String]
      attr_reader :path

      # @param path [String]
      def initialize(path)
        @path = path
      end

      # Maximum number of bytes that are read from the file. Any process ID is shorter.
      SIZE = 32
      private_constant :SIZE

      # Overwrites an existing file, which a killed server may have left. The sockets are opened before this call: if
      # that server still ran, opening them would have failed (except with reuse_port).
      # @param replaced [Boolean] whether the server whose ID is in the file ends now, so that {#remove} must not
      #   restore that ID
      # @return [void]
      # @raise [BootError]
      def write(replaced: false)
        # Opening a named pipe for writing would block until it has a reader.
        raise BootError, "the pidfile #{path} is a named pipe. Set a regular file with --pidfile." if File.pipe?(path)

        FileUtils.mkdir_p(File.dirname(path))
        @former = running unless replaced
        replace_id(Process.pid)
      rescue SystemCallError => e
        raise BootError, "can't write the pidfile #{path}: #{ErrorText.reason(e)}. Set another file with " \
                         "--pidfile."
      end

      # Removes the file, unless another process has written its ID meanwhile. If {#write} has overwritten the ID of a
      # process that still runs, that ID is restored instead.
      # @return [void]
      def remove
        return unless named == Process.pid

        @former && running?(@former) ? replace_id(@former) : File.unlink(path)
      rescue SystemCallError
        # Nothing more can be done: the file does not exist any more, or this user may not remove it.
      end

      private

      # Overwrites the former ID first and truncates the file afterwards, because a monitor may read it at any moment.
      def replace_id(pid)
        text = "#{pid}\n"
        File.open(path, File::RDWR | File::CREAT) do |file|
          former = file.size
          file.syswrite(text.ljust([former, SIZE].min, "\n"))
          file.truncate(text.size) if former > text.size
        end
      end

      # Reads only regular files: reading a pipe or a device may block.
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
