# frozen_string_literal: true

module Heddle
  class Server
    class Log
      # A log file, opened for appending. If logrotate has renamed or removed it, {#write} creates a new file; no signal
      # is needed. {#write} checks this at most once a second. After `copytruncate`, writing continues at the beginning
      # of the truncated file.
      class File
        # Seconds between two checks whether the path still names the open file.
        POLL_INTERVAL = 1.0
        private_constant :POLL_INTERVAL

        # @return [String]
        attr_reader :path

        # @param path [String] a relative path refers to the current folder
        # @param poll_interval [Numeric] seconds between two checks whether the path still names the open file
        # @raise [BootError]
        def initialize(path, poll_interval: POLL_INTERVAL)
          @path = ::File.expand_path(path)
          @poll_interval = poll_interval
          reopen
        rescue SystemCallError => e
          raise BootError, "can't write the log #{path} as uid #{Process.euid}: #{ErrorText.reason(e)}. " \
                           "Create its folder, let this user write to it, or name another file with --log-file"
        end

        # @param text [String]
        # @return [Integer] the number of bytes
        def write(text)
          reopen_if_replaced
          @io.write(text)
        end

        # @return [void]
        def close = @io.close

        private

        def reopen_if_replaced
          now = MonotonicClock.now
          return if now - @checked_at < @poll_interval

          @checked_at = now
          reopen unless same?
        rescue SystemCallError
          # For example, the folder may be missing for a moment. Lines are written to the old file until the new one can
          # be opened.
        end

        def same?
          there = ::File.stat(@path)
          there.ino == @identity.ino && there.dev == @identity.dev
        rescue Errno::ENOENT
          false
        end

        def reopen
          io = ::File.open(@path, ::File::WRONLY | ::File::APPEND | ::File::CREAT, 0o640)
          io.sync = true
          @io&.close
          @io = io
          @identity = io.stat
          @checked_at = MonotonicClock.now
        end
      end
    end
  end
end
